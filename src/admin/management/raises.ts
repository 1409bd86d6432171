/** Raises of the limits of organizations, teams, people and keys (docs/design/usage.md, Raises). */
import Type from "typebox";
import { grouped } from "../../core/inference/amounts.ts";
import { snakeName, type Value } from "../../core/schema/codec.ts";
import { type Budget, noBudget } from "../../core/store/budget.ts";
import type { Organization } from "../../core/store/directory.ts";
import { type RaiseSubject, raisedTo } from "../../core/store/raise.ts";
import { type Facts, flag, required } from "./command.ts";
import { isClosed, type ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { changedLimits, limitsInWords, withinPlan } from "./limits.ts";
import { organizationFlag } from "./organizations.ts";
import { personFlag, personOf } from "./people.ts";
import { exampleRaise, raiseFacts, raiseNow } from "./raise.ts";
import { admins, examples, id, Limits, limitChanges, managers, moment, nullable, oneOf, words } from "./shapes.ts";
import { teamNamed } from "./team.ts";
import { verbsOf } from "./verb.ts";

const day_ms = 86_400_000;
const raise_max_days = 366;

export const RaisedLimits = Type.Object(
  {
    organization_id: id("org"),
    organization: Type.String({ description: "The organization's slug." }),
    subject: oneOf(["organization", "team", "person", "key"]),
    subject_id: Type.String({ description: "Its ID." }),
    limits: Limits,
    raise: raiseNow(),
  },
  { $id: "RaisedLimits", description: "Limits, and the raise that counts above them until it ends." },
);
export type RaisedLimits = Value<typeof RaisedLimits>;

const raising = {
  limits: Type.Optional(
    nullable(limitChanges("The limits while the raise lasts, each above the one that counts otherwise.")),
  ),
  until: Type.Optional(nullable(moment("When the raise ends: ISO 8601 with a time zone, or a date in UTC."))),
  end: Type.Optional(
    nullable(Type.Boolean({ description: "True: ends the current raise now. Send nothing else with it." })),
  ),
};
const raisingSchema = Type.Object(raising);
type Raising = Value<typeof raisingSchema>;

const raisingFlags = (whose: string) => ({
  limits: flag("--limit", `what ${whose} can use until then`),
  until: flag("--until <instant>", `when it ends: ISO 8601 with a time zone, or a date in UTC`),
  end: flag("--end", "end the current raise now"),
});

const description = (whose: string) =>
  `Until an instant, ${whose} counts at once, for running requests too, if it is above the usual limit. From that instant on the usual limits count again, by the database's clock. Another raise replaces this one. Limits that are changed meanwhile count when it ends, or at once if they are above it.`;

const example: RaisedLimits = {
  organizationId: examples.organization,
  organization: "acme",
  subject: "team",
  subjectId: examples.team,
  limits: { ...noBudget, week: 2_000_000_000 },
  raise: exampleRaise,
};
const sent = { limits: { week: 3_000_000_000 }, until: "2030-02-01" };
const faults = ["resource_not_found", "wrong_state"] as const;

export const raiseVerbs = [
  verbsOf("Organizations")({
    name: "raiseOrganization",
    route: "PUT /organizations/{organization}/raise",
    summary: "Raise the limits of an organization's plan until an instant",
    description: description("more than the plan gives"),
    roles: admins,
    kind: "act",
    faults,
    takes: Type.Object({ organization: words("Slug or ID."), ...raising }),
    answers: RaisedLimits,
    example: {
      takes: { organization: "acme", ...sent },
      answer: { ...example, subject: "organization", subjectId: examples.organization },
    },
    command: {
      words: "org raise",
      description: "raise the limits of an organization's plan until an instant; --end ends it now",
      takes: { organization: organizationFlag, ...raisingFlags("the organization") },
      says: raisedFacts,
      help: `
Examples:
  $ sluice org raise acme --limit week=9000000000 --until 2026-12-24
  $ sluice org raise acme --end`,
    },
    async act(context, input) {
      const organization = await context.openOrganization(input.organization);
      const { id } = organization;
      const plan = organization.plan === null ? null : ((await context.catalog()).plans.get(organization.plan) ?? null);
      if (plan === null && !input.end)
        fail(`Organization '${organization.slug}' has no plan, and so no limits to raise.`, "wrong_state");
      const budget = plan ? changedLimits(plan, noBudget) : noBudget;
      return raised(context, organization, { subject: "organization", id, audited: id, budget }, input);
    },
  }),
  verbsOf("Teams")({
    name: "raiseTeam",
    route: "PUT /teams/{team}/raise",
    summary: "Raise the limits of a team until an instant",
    description: description("more than the team's limits"),
    roles: managers,
    kind: "act",
    faults,
    takes: Type.Object({
      team: words("ID of the team, or with `organization` its name."),
      organization: Type.Optional(nullable(words("Slug or ID: the team can then be given by its name."))),
      ...raising,
    }),
    answers: RaisedLimits,
    example: { takes: { team: examples.team, ...sent }, answer: example },
    command: {
      words: "team raise",
      description: "raise the limits of a team until an instant; --end ends it now",
      takes: {
        team: flag("<team>", "ID of the team, or with --org its name"),
        organization: flag("--org <org>", "slug or ID of the organization"),
        ...raisingFlags("the team"),
      },
      says: raisedFacts,
    },
    async act(context, input) {
      const owner = input.organization == null ? null : await context.organizationOf(input.organization);
      const { id, organizationId, budget } = await teamNamed(context, input.team, owner);
      const organization = await context.openOrganization(organizationId);
      return raised(context, organization, { subject: "team", id, audited: id, budget }, input);
    },
  }),
  verbsOf("Keys")({
    name: "raiseKey",
    route: "PUT /keys/{id}/raise",
    summary: "Raise the limits of a key until an instant",
    description: description("more than the key's limits"),
    roles: managers,
    onKey: "limit",
    kind: "act",
    faults,
    takes: Type.Object({ id: words("ID of the key."), ...raising }),
    answers: RaisedLimits,
    example: {
      takes: { id: examples.key, ...sent },
      answer: { ...example, subject: "key", subjectId: examples.key },
    },
    command: {
      words: "key raise",
      description: "raise the limits of a key until an instant; --end ends it now",
      takes: { id: flag("<id>", "ID of the key"), ...raisingFlags("the key") },
      says: raisedFacts,
    },
    async act(context, input) {
      const { id, organizationId } = await context.keyOf(input.id);
      const organization = await context.openOrganization(organizationId);
      const { budget } = await context.administration.keyBudget(id);
      return raised(context, organization, { subject: "key", id, audited: id, budget }, input);
    },
  }),
  verbsOf("People")({
    name: "raisePerson",
    route: "PUT /people/{person}/raise",
    summary: "Raise the limits of a person in an organization until an instant",
    description: description("more than the person's limits there"),
    roles: managers,
    kind: "act",
    faults,
    takes: Type.Object({ person: words("ID of the person."), organization: words("Slug or ID."), ...raising }),
    answers: RaisedLimits,
    example: {
      takes: { person: `per_${"0".repeat(31)}6`, organization: "acme", ...sent },
      answer: { ...example, subject: "person", subjectId: `per_${"0".repeat(31)}6` },
    },
    command: {
      words: "person raise",
      description: "raise what a person can use in an organization until an instant; --end ends it now",
      takes: {
        person: personFlag,
        organization: required("--org <org>", "slug or ID of the organization"),
        ...raisingFlags("the person"),
      },
      says: raisedFacts,
    },
    async act(context, input) {
      const { person } = await personOf(context, input.person);
      const organization = await context.openOrganization(input.organization);
      const all = (await context.people.memberBudgets([person.id])).get(person.id) ?? [];
      const budget = all.find(({ organizationId }) => organizationId === organization.id)?.budget ?? noBudget;
      const id = await context.administration.memberId(organization.id, person.id);
      return raised(context, organization, { subject: "person", id, audited: person.id, budget }, input);
    },
  }),
] as const;

/** The subject of a raise, and its limits without the raise. */
type Raisable = Omit<RaiseSubject, "organizationId"> & { budget: Budget };

async function raised(
  context: ManagementContext,
  organization: Organization,
  { budget, ...named }: Raisable,
  input: Raising,
): Promise<RaisedLimits> {
  const { administration, actor, announce } = context;
  const subject = { ...named, organizationId: organization.id };
  const whose = named.subject;
  const wanted = input.end ? endOf(input) : await raiseOf(context, organization, { budget, whose }, input);
  const raise = await administration.setRaise(subject, wanted, actor);
  if (raise === "closed") return isClosed(organization.slug);
  if (raise === "none") fail(`The limits of this ${whose} are not raised, so there is nothing to end.`, "wrong_state");
  if (raise === "past") return inThePast(wanted!.until);
  await announce(whose === "key" ? named.id : organization.id);
  return {
    organizationId: organization.id,
    organization: organization.slug,
    subject: whose,
    subjectId: named.audited,
    limits: budget,
    raise: raise === "ended" ? null : raise,
  };
}

function endOf({ limits, until }: Raising): null {
  if (limits != null || until != null) fail("To end a raise, give nothing else. To change it, set it anew.");
  return null;
}

async function raiseOf(
  context: ManagementContext,
  organization: Organization,
  { budget, whose }: { budget: Budget; whose: RaiseSubject["subject"] },
  { limits: changes, until }: Raising,
): Promise<{ limits: Budget; until: Date }> {
  const limits = changedLimits(changes, noBudget);
  if (limitsInWords(limits) === null)
    fail("Specify the limits to raise, such as week=3000000000, each a number; or that the raise ends.");
  if (until == null)
    return fail("A raise needs an instant at which it ends. Without one, change the limits themselves.");
  for (const name of Object.keys(noBudget) as (keyof Budget)[]) refuseLower(name, limits[name], budget[name], whose);
  if (whose !== "organization") await withinRaisedPlan(context, organization, limits, whose);
  if (until.getTime() <= context.now_ms()) return inThePast(until);
  if (until.getTime() > context.now_ms() + raise_max_days * day_ms)
    fail(`A raise ends within ${raise_max_days} days. For longer, change the limits themselves.`);
  return { limits, until };
}

function refuseLower(name: keyof Budget, raise: number | null, limit: number | null, whose: string): void {
  if (raise === null) return;
  if (limit === null) fail(`The ${whose} has no limit '${snakeName(name)}', so there is nothing to raise.`);
  if (raise <= limit)
    fail(
      `The ${whose}'s limit '${snakeName(name)}' is ${grouped(limit)} already, and a raise to ${grouped(raise)} is not above it. A raise never lowers.`,
    );
}

/** Refuses a raise above the organization's own limits of now: it would never count. */
async function withinRaisedPlan(
  { administration, catalog }: ManagementContext,
  { id, plan: name }: Organization,
  limits: Budget,
  whose: string,
): Promise<void> {
  const plan = name === null ? null : ((await catalog()).plans.get(name) ?? null);
  if (!plan) return;
  const raise = (await administration.raises([id])).get(id)?.limits;
  const most = { ...plan };
  for (const one of Object.keys(noBudget) as (keyof Budget)[]) most[one] = raisedTo(plan[one], raise?.[one]);
  withinPlan(limits, most, whose);
}

function inThePast(until: Date): never {
  return fail(`${until.toISOString()} is in the past. A raise ends in the future.`);
}

function raisedFacts({ organization, subject, subjectId, limits, raise }: RaisedLimits): Facts {
  const isWhole = subject === "organization";
  return [
    [subject, isWhole ? `${organization} (${subjectId})` : subjectId],
    ...(isWhole ? [] : [["in", organization] as const]),
    ["limits", limitsInWords(limits) ?? "none"],
    ...(raise ? raiseFacts(raise) : ([["raised to", `nothing: the limits above count`]] as const)),
  ];
}
