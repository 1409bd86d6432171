/** Memberships that administrators give and take away by hand (docs/identity.md, People and memberships by hand). */
import Type from "typebox";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import { scopes } from "../../core/store/directory.ts";
import { memberRoles, type PersonRole, personRoles, serviceRoles } from "../../core/store/people.ts";
import { flag, required } from "./command.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";
import { changePerson, examplePerson, personChange, personFacts, personFlag } from "./people.ts";
import { personNamed } from "./person-named.ts";
import { entry, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("People");

const one = { person: words(`${personNamed}.`) };
const sent = { person: examplePerson.id };

export const membershipVerbs = [
  verb({
    name: "giveMembership",
    route: "PUT /people/{person}/membership",
    summary: "Give a membership",
    description:
      "By hand: it stays until it is taken, and counts before one by a rule in the same organization. It replaces an earlier one by hand.",
    ...personChange,
    takes: Type.Object({
      ...one,
      organization: Type.Optional(nullable(words("Slug or ID. Left out for the roles `viewer` and `admin`."))),
      role: oneOf([...personRoles], { "x-must-be": personRoles.join(", ") }),
      team: Type.Optional(nullable(words("ID or name of a team of the organization."))),
      scopes: Type.Optional(
        nullable(Type.Array(oneOf([...scopes]), { minItems: 1, maxItems: 10, description: "Else all three." })),
      ),
      models: Type.Optional(
        nullable(
          Type.Array(entry(), {
            minItems: 1,
            maxItems: 1000,
            description: "IDs of models; else every model.",
          }),
        ),
      ),
    }),
    example: { takes: { ...sent, organization: "acme", role: "member", team: "research" }, answer: examplePerson },
    command: {
      words: "membership give",
      description: "give a person a membership by hand, in an organization or for the service",
      takes: {
        person: personFlag,
        role: required("--role <role>", `role: ${personRoles.join(", ")}`),
        organization: flag("--org <org>", `slug or ID of the organization, for the roles ${memberRoles.join(" and ")}`),
        team: flag("--team <team>", "ID or name of a team of the organization"),
        scopes: flag("--scopes <list>", `the most that keys and tokens there may do (default: ${scopes.join(",")})`),
        models: flag("--models <list>", "IDs of the allowed models (default: every model)"),
      },
      versioned: "person",
      says: personFacts,
      help: `
Examples:
  $ sluice membership give ann@example.com --org acme --role member --team research
  $ sluice membership give per_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --role viewer`,
    },
    async act(context, input) {
      const { organization, team, role } = input;
      refuseContradiction(role, organization ?? null, team ?? null);
      const found = organization == null ? null : await context.openOrganization(organization);
      const { models, aliases } = await context.catalog();
      const named = {
        organization: found?.id ?? null,
        team: team ?? null,
        role,
        scopes: scopes.filter((scope) => (input.scopes ?? scopes).includes(scope)),
        models: input.models ? parse.models(input.models, models, aliases) : null,
      };
      return changePerson(context, input, async (id, actor, version) => {
        const given = await context.people.giveMembership(id, named, actor, version);
        if (given === "no_organization") return fail("The organization was closed meanwhile.", "wrong_state");
        if (given === "no_team")
          return fail(
            `${found!.slug} has no team '${parse.excerpt(team!)}'. To list its teams, run: sluice team list --org ${found!.slug}`,
            "resource_not_found",
          );
        return given;
      });
    },
  }),
  verb({
    name: "takeMembership",
    route: "POST /people/{person}/membership/take",
    summary: "Take a membership",
    description: "Takes one that was given by hand; one by a rule in the same organization then counts again.",
    ...personChange,
    takes: Type.Object({
      ...one,
      organization: Type.Optional(nullable(words("Slug or ID. Left out: the role for the service."))),
    }),
    example: { takes: { ...sent, organization: "acme" }, answer: { ...examplePerson, memberships: [], version: 2 } },
    command: {
      words: "membership take",
      description: "take a membership that was given by hand",
      takes: {
        person: personFlag,
        organization: flag("--org <org>", "slug or ID of the organization (default: the role for the service)"),
      },
      versioned: "person",
      says: personFacts,
    },
    async act(context, input) {
      const place = input.organization == null ? null : (await context.organizationOf(input.organization)).id;
      return changePerson(context, input, async (id, actor, version) => {
        const taken = await context.people.takeMembership(id, place, actor, version);
        if (taken !== "no_membership") return taken;
        return fail(
          "There is no membership by hand. One by a rule ends when its rule does, or with the claim at the issuer.",
          "resource_not_found",
        );
      });
    },
  }),
] as const;

function refuseContradiction(role: PersonRole, organization: string | null, team: string | null): void {
  const isForService = serviceRoles.some((one) => one === role);
  if (isForService && organization !== null)
    fail(`The role ${role} is for the service. Leave the organization out, or choose ${memberRoles.join(" or ")}.`);
  if (!isForService && organization === null) fail(`The role ${role} is one in an organization. Name it.`);
  if (isForService && team !== null) fail(`The role ${role} is for the service, which has no teams.`);
}
