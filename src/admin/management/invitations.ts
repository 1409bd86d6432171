/** Invitations of people who have not signed in yet (docs/identity.md, Invitations). */
import Type from "typebox";
import type { Currency } from "../../core/inference/money.ts";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { idOf } from "../../core/store/ids.ts";
import { memberRoles } from "../../core/store/people.ts";
import { instant as instantWritten } from "../../core/time/written.ts";
import { lowered } from "../../features/identity/rules.ts";
import { exampleOf } from "../store/example.ts";
import {
  invitation_days,
  invitationFields,
  invitationStates,
  openInvitations_max,
  type StoredInvitation,
} from "../store/invitations.ts";
import { type Column, type Facts, flag, required } from "./command.ts";
import { type ManagementContext, reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { LimitValue, limitValueChanges, valueInWords, valueShown } from "./limit-shape.ts";
import { newLimits } from "./limits.ts";
import { partFrom } from "./page.ts";
import * as parse from "./parse.ts";
import { examples, formed, limitIn, managers, oneOrganization, partOf, partOfIds, readers, words } from "./shapes.ts";
import { teamNamed } from "./team.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("People");

export const Invitation = Type.Object(invitationFields(nullable(LimitValue)), {
  $id: "Invitation",
  description: "The first who signs in by the issuer with this verified address gets the membership.",
});
type Invitation = Value<typeof Invitation>;

const oneId = formed(
  /^inv_[0-9a-f]{32}$/,
  "the ID of an invitation, which begins with 'inv_'",
  "ID of the invitation.",
);
const address = formed(
  /^[!-?A-~]{1,64}@[!-?A-~]{1,255}$/,
  "an e-mail address in ASCII, such as ann@example.com",
  "The address, in ASCII. Capital and small letters are the same; nothing else is.",
);
const exampleId = `inv_${"0".repeat(31)}8`;
const example = exampleOf(Invitation, {
  id: exampleId,
  organization: "acme",
  team: "research",
  issuer: "https://login.example",
  email: "ann@example.com",
  createdBy: "operator:lea",
  expiresAt: new Date(examples.at.getTime() + invitation_days * 86_400_000),
  personId: null,
});

export const invitationVerbs = [
  verb({
    name: "createInvitation",
    route: "POST /invitations",
    summary: "Invite somebody",
    description: `The first who signs in by the issuer with this verified address gets the membership, by hand, and the limits. It lasts ${invitation_days} days and is taken once, if who invites may still do so then. An \`organization-admin\` invites into their own organization.`,
    roles: managers,
    kind: "creation",
    faults: ["resource_not_found", "wrong_state", "already_exists", "idempotency_key_reused"],
    takes: Type.Object({
      email: address,
      ...oneOrganization,
      role: Type.Optional(
        oneOf([...memberRoles], {
          description: "`member` unless it says otherwise.",
          "x-must-be": memberRoles.join(" or "),
        }),
      ),
      team: Type.Optional(nullable(words("ID or name of a team of the organization."))),
      issuer: Type.Optional(words("The issuer; can be left out where there is only one.")),
      limits: Type.Optional(
        nullable(limitValueChanges("The own limits of the person, who can have them from the first moment.")),
      ),
    }),
    answers: Invitation,
    example: { takes: { email: example.email, organization: "acme", team: "research" }, answer: example },
    command: {
      words: "invitation create",
      description: `invite somebody into an organization, who signs in for the first time within ${invitation_days} days`,
      takes: {
        email: flag("<email>", "the address that the issuer must have verified"),
        organization: required("--org <org>", "slug or ID of the organization"),
        role: flag("--role <role>", `role: ${memberRoles.join(", ")} (default: member)`),
        team: flag("--team <team>", "ID or name of a team of the organization"),
        issuer: flag("--issuer <issuer>", "the issuer (default: the only one)"),
        limits: flag("--limit", "the person's own limits"),
      },
      says: invitationFacts,
      help: `
Examples:
  $ sluice invitation create ann@example.com --org acme --team research
  $ sluice invitation create lea@example.com --org acme --role organization-admin --limit month=50`,
    },
    async act(context, input) {
      const organization = await context.openOrganization(input.organization);
      const team = input.team == null ? null : await teamNamed(context, input.team, organization);
      const wanted = {
        id: idOf(context.newUuid(), "inv_"),
        organizationId: organization.id,
        teamId: team?.id ?? null,
        role: input.role ?? "member",
        issuer: await knownIssuer(context, input.issuer),
        email: lowered(input.email),
        limits:
          input.limits == null
            ? null
            : await newLimits(context, organization, { limits: input.limits, whose: "person" }),
      } as const;
      const repeat = context.repeatOf("createInvitation", input);
      const made = await context.invitations.createInvitation(wanted, context.actor, repeat);
      if (made === "reused") return reusedKey();
      if (made === "member") fail(`Somebody with the address is in ${organization.slug} already.`, "already_exists");
      if (made === "already") fail("The address is invited already. Revoke that invitation first.", "already_exists");
      if (made === "too_many") fail(`${openInvitations_max} invitations are open. Revoke some first.`, "wrong_state");
      if (!("repeated" in made)) return shownIn(await context.currency(), made);
      // The invitation may be gone: it is deleted when the person who accepted it is erased.
      const repeated = await context.invitations.findInvitation(made.repeated);
      return shownIn(await context.currency(), repeated ?? noInvitation(made.repeated));
    },
  }),
  verb({
    name: "pageInvitations",
    route: "GET /invitations",
    summary: "List invitations",
    description: "Newest first, with what became of them; those of the last hundred days.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object({
      organization: Type.Optional(oneOrganization.organization),
      state: Type.Optional(oneOf([...invitationStates], { "x-must-be": invitationStates.join(", ") })),
      ...partOfIds("inv"),
    }),
    answers: partOf(Invitation, "InvitationList"),
    example: { takes: { organization: "acme" }, answer: { data: [example], nextCursor: null } },
    command: {
      words: "invitation list",
      description: "list invitations, and what became of them",
      takes: {
        organization: flag("--org <org>", "only those into this organization"),
        state: flag("--state <state>", `only these: ${invitationStates.join(", ")}`),
      },
      columns: columns(),
      none: "Nobody is invited.\n",
      parts: "all",
    },
    async act(context, input) {
      const found = await context.invitations.pageInvitations({
        limit: limitIn(input),
        after: input.cursor,
        organizationId: await context.narrowedTo(input.organization),
        state: input.state,
      });
      const currency = await context.currency();
      return partFrom(found, (item) => shownIn(currency, item));
    },
  }),
  verb({
    name: "revokeInvitation",
    route: "POST /invitations/{id}/revoke",
    summary: "Revoke an invitation",
    description: "Nobody takes it any more. A membership that it gave stays: take that. Repeating it changes nothing.",
    roles: managers,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object({ id: oneId }),
    answers: Invitation,
    example: {
      takes: { id: exampleId },
      answer: { ...example, state: "revoked", endedAt: examples.at, endedBy: "operator:lea" },
    },
    command: {
      words: "invitation revoke",
      description: "revoke an invitation that nobody has taken",
      takes: { id: flag("<id>", "ID of the invitation") },
      says: invitationFacts,
    },
    async act(context, { id: named }) {
      const found = await context.invitations.findInvitation(named);
      if (!found || !context.isInSight(found.organizationId)) return noInvitation(named);
      const ended = await context.invitations.revokeInvitation(named, context.actor);
      if (ended === null) return noInvitation(named);
      if (ended !== "not_open") return shownIn(await context.currency(), ended);
      const now = (await context.invitations.findInvitation(named)) ?? found;
      if (now.state === "revoked") return shownIn(await context.currency(), now);
      return fail(`This invitation is no longer open: it is ${now.state}.`, "wrong_state");
    },
  }),
] as const;

function shownIn(currency: Currency, stored: StoredInvitation): Invitation {
  return { ...stored, limits: stored.limits && valueShown(stored.limits, currency) };
}

/** The issuer in the settings: the named one, or the only one by which people sign in. */
async function knownIssuer({ configuration }: ManagementContext, named: string | undefined): Promise<string> {
  const settings = (await configuration?.())?.identity ?? null;
  const known = (settings?.issuers ?? []).filter(({ clientId }) => clientId !== null).map(({ issuer }) => issuer);
  if (named !== undefined && known.includes(named)) return named;
  const [first, ...others] = known;
  if (first === undefined)
    return fail("Nobody can sign in: sluice.yaml has no issuer (docs/identity.md).", "wrong_state");
  if (named === undefined && others.length === 0) return first;
  const problem = named === undefined ? "Name the issuer" : `People do not sign in by '${parse.excerpt(named)}'`;
  return fail(`${problem}. There are: ${known.join(", ")}.`);
}

function noInvitation(named: string): never {
  return parse.missing("invitation", named, "", "invitation list");
}

function invitationFacts(one: Invitation): Facts {
  const { limits, endedAt, endedBy } = one;
  return [
    ["id", one.id],
    ["address", one.email],
    ["issuer", one.issuer],
    ["organization", `${one.organization} (${one.organizationId})`],
    ["role", one.role],
    ["team", one.teamId && [one.team, `(${one.teamId})`].filter(Boolean).join(" ")],
    ["limits", valueInWords(limits)],
    ["invited", `${instantWritten(one.createdAt)} by ${one.createdBy}`],
    ["expires", instantWritten(one.expiresAt)],
    ["state", one.state],
    ["ended", endedAt && `${instantWritten(endedAt)} by ${endedBy}`],
    ["taken by", one.personId],
  ];
}

function columns(): Column<Invitation>[] {
  return [
    { head: "ID", cell: (one) => one.id },
    { head: "ADDRESS", cell: ({ email }) => email, breaks: true },
    { head: "ORG", cell: ({ organization }) => organization },
    { head: "TEAM", cell: ({ team }) => team ?? "", optional: true },
    { head: "ROLE", cell: ({ role }) => role },
    { head: "STATE", cell: ({ state }) => state },
    { head: "EXPIRES", cell: ({ expiresAt }) => instantWritten(expiresAt) ?? "" },
  ];
}
