/** Limits of people, and of those who have none of their own (docs/design/usage.md, Budgets). */
import Type from "typebox";
import { noBudget } from "../../core/store/budget.ts";
import { flag, required } from "./command.ts";
import { fail } from "./error.ts";
import { staleOrganization } from "./organizations.ts";
import {
  changed,
  examplePersonNow,
  PersonStanding,
  personFlag,
  personNow,
  personNowFacts,
  personOf,
} from "./people.ts";
import { limitChanges, managers, oneOrganization, readers, words } from "./shapes.ts";
import { defaultAfter, defaultShape, defaultShown, exampleDefault } from "./team-limits.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("People");

export const MemberDefault = defaultShape(
  "MemberDefault",
  "What each person of the organization can use, unless the person or the person's team has other limits.",
);

const example = exampleDefault({ ...noBudget, week: 2_000_000_000 });

export const memberVerbs = [
  verb({
    name: "updatePersonLimits",
    route: "PATCH /people/{person}/limits",
    summary: "Change the limits of a person in an organization",
    description:
      "All keys and sign-ins of the person there share them. They count at once, for running requests too, in the place of those of the team or the organization for its members; without any left, those count again. What is left out stays.",
    roles: managers,
    kind: "change",
    faults: ["resource_not_found", "wrong_state", "version_conflict"],
    takes: Type.Object({
      person: words("ID of the person."),
      organization: words("Slug or ID."),
      limits: limitChanges("What the person can use there. What is left out stays; null takes a limit away."),
    }),
    answers: PersonStanding,
    example: {
      takes: { person: examplePersonNow.id, organization: "acme", limits: { week: 2_000_000_000 } },
      answer: examplePersonNow,
    },
    command: {
      words: "person limit",
      description: "change what a person can use in an organization, with all keys and sign-ins together",
      takes: {
        person: personFlag,
        organization: required("--org <org>", "slug or ID of the organization"),
        limits: flag("--limit", "what the person can use"),
      },
      versioned: "person",
      says: personNowFacts,
      help: `
Examples:
  $ sluice person limit per_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --org acme --limit week=2000000000
  $ sluice person limit per_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --org acme --limit week=none`,
    },
    async act(context, input) {
      const { person } = await personOf(context, input.person);
      const organization = await context.openOrganization(input.organization);
      const before = await context.people.memberLimits(person.id, organization.id);
      const budget = await defaultAfter(context, organization, input.limits, { before, whose: "person" });
      const change = { organizationId: organization.id, before, budget };
      await changed(context, input, async (id, actor, version) => {
        const after = await context.people.setMemberLimits(id, change, actor, version);
        if (after !== "overtaken") return after;
        return fail("Somebody else has changed these limits meanwhile. Nothing was changed.", "version_conflict");
      });
      return personNow(context, await personOf(context, person.id));
    },
  }),
  verb({
    name: "findMemberDefault",
    route: "GET /organizations/{organization}/member-limits",
    summary: "Show the limits of people without limits of their own",
    description: "Unless their team says otherwise.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object(oneOrganization),
    answers: MemberDefault,
    example: { takes: { organization: "acme" }, answer: example },
    async act({ administration, organizationOf }, input) {
      const organization = await organizationOf(input.organization);
      return defaultShown(organization, await administration.memberDefault(organization.id));
    },
  }),
  verb({
    name: "updateMemberDefault",
    route: "PATCH /organizations/{organization}/member-limits",
    summary: "Change the limits of people without limits of their own",
    description: "They count at once, for everybody whose team has no other limits, and for running requests too.",
    roles: managers,
    kind: "change",
    faults: ["resource_not_found", "wrong_state", "version_conflict"],
    takes: Type.Object({
      ...oneOrganization,
      limits: limitChanges("What is left out stays; null takes a limit away."),
    }),
    answers: MemberDefault,
    example: { takes: { organization: "acme", limits: { week: 2_000_000_000 } }, answer: example },
    async act(context, input) {
      const { administration, actor, announce, openOrganization, organizationOf } = context;
      const organization = await openOrganization(input.organization);
      const before = await administration.memberDefault(organization.id);
      const limits = await defaultAfter(context, organization, input.limits, { before, whose: "person" });
      const overtakenBy = await administration.setMemberDefault(organization.id, limits, actor, input.version ?? null);
      const current = await organizationOf(organization.id);
      if (overtakenBy) return staleOrganization(administration, current, input.version);
      await announce(organization.id);
      return defaultShown(current, limits);
    },
  }),
] as const;
