/**
 * Limits of organizations, teams, people and keys: all four have a sub-resource `/limits` of the same form
 * (docs/limits.md).
 */

import Type from "typebox";
import { oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Budget } from "../../core/store/budget.ts";
import { noBudget } from "../store/budget.ts";
import { exampleOf } from "../store/example.ts";
import type { LimitSubject, SubjectLimits } from "../store/limits.ts";
import type { Organization } from "../store/organization.ts";
import { isClosed, type ManagementContext, noKey, noOrganization } from "./context.ts";
import { fail, ManagementError } from "./error.ts";
import { changeOf, type LimitChanges, limitChanges, withinOrganization, wordsIn } from "./limit-change.ts";
import {
  LimitsInForce,
  type LimitValueChanges,
  limitsShown,
  newValue,
  OrganizationLimits,
  SubjectLimitsShape,
  type SubjectLimitsShown,
  valueShown,
} from "./limit-shape.ts";
import { namesOf } from "./model-patterns.ts";
import { noPerson, personOf } from "./people.ts";
import { personNamed } from "./person-named.ts";
import { examples, limitIn, managers, oneOrganization, owners, part, readers, words } from "./shapes.ts";
import { exampleStanding } from "./standing.ts";
import { noTeam, teamNamed } from "./team.ts";
import { someChange, verbsOf } from "./verb.ts";
import { changed } from "./version.ts";

const verb = verbsOf("Limits");

const reading = "Each value, the limits in force and where each comes from, and what is used of them.";
const changing =
  "What is left out stays. It counts at once, for running requests too. One field that the caller may not change refuses the whole.";
/** The common members of all verbs that show limits. */
const shows = { description: reading, faults: ["resource_not_found"], answers: SubjectLimitsShape } as const;
/** The common members of all verbs that change limits. */
const changes = {
  description: changing,
  roles: managers,
  kind: "change",
  faults: ["resource_not_found", "wrong_state", "version_conflict"],
  answers: SubjectLimitsShape,
} as const;

const limitsExample = (subject: SubjectLimitsShown["subject"], subjectId: string): SubjectLimitsShown => {
  const week = { ...noBudget, week: 20_000_000_000 };
  const isLimited = {
    limit: valueShown(week, "USD").week as { amount: string; currency: string },
    from: "own" as const,
  };
  return exampleOf(SubjectLimitsShape, {
    organization: "acme",
    subject,
    subjectId,
    name: "research",
    own: valueShown(week, "USD"),
    keys: subject === "organization" || subject === "team" ? valueShown(noBudget, "USD") : null,
    members: subject === "organization" || subject === "team" ? valueShown(noBudget, "USD") : null,
    models: { "openai/*": valueShown({ ...noBudget, month: 10_000_000_000 }, "USD") },
    raises: [],
    inForce: { ...exampleOf(LimitsInForce), week: isLimited },
    standing: exampleStanding,
    modelStandings: { "openai/*": exampleStanding },
    version: 3,
  });
};

const oneTeam = { team: words("ID of the team.") };
const oneKey = { id: words("ID of the key.") };
const onePerson = { ...oneOrganization, person: words(`${personNamed}.`) };
const examplePerson = `per_${"0".repeat(31)}6`;
const sent = { own: { week: "20" } };

export const limitVerbs = [
  verb({
    name: "findOrganizationLimits",
    route: "GET /organizations/{organization}/limits",
    summary: "Show the limits of an organization",
    ...shows,
    description: `${reading} With \`of\`, also those of its keys, teams or people.`,
    roles: readers,
    takes: Type.Object({
      ...oneOrganization,
      of: Type.Optional(oneOf(["keys", "teams", "people"], { "x-must-be": "keys, teams or people" })),
      ...part(/^(key|team|per)_[0-9a-f]{32}$/),
    }),
    answers: OrganizationLimits,
    example: {
      takes: { organization: "acme", of: "teams" },
      answer: {
        ...limitsExample("organization", examples.organization),
        data: [limitsExample("team", examples.team)],
        nextCursor: null,
      },
    },
    async act(context, input) {
      const organization = await context.organizationOf(input.organization);
      const { id, slug } = organization;
      const whole = await found(context, { subject: "organization", id, organizationId: id });
      const of = input.of && kinds[input.of];
      const param = input.limit === undefined ? "cursor" : "limit";
      if (!of && input[param] !== undefined)
        throw new ManagementError(`'${param}' is for the list that 'of' asks for.`, "invalid_value", { param });
      if (of && input.cursor && !input.cursor.startsWith(`${prefixes[of]}_`))
        fail(`The cursor is of another list than that of the ${input.of}.`);
      const page = of && (await context.administration.pageLimits({ ...pageOf(input), organizationId: id, of }));
      const [own, ...data] = await limitsShown(context, [whole, ...(page?.items ?? [])], slug);
      const nextCursor = page?.hasMore ? data.at(-1)!.subjectId : null;
      return { ...own!, data, nextCursor };
    },
  }),
  verb({
    name: "updateOrganizationLimits",
    route: "PATCH /organizations/{organization}/limits",
    summary: "Change the limits of an organization",
    ...changes,
    description: `${changing} Its own limits replace those of its plan, up or down; they, those for models and temporary increases are for the role admin.`,
    takes: Type.Object({ ...oneOrganization, ...limitChanges }, someChange),
    example: {
      takes: { organization: "acme", keys: { week: "20" } },
      answer: limitsExample("organization", examples.organization),
    },
    async act(context, { organization: named, ...input }) {
      requireAdmin(context, input);
      const organization = await context.openOrganization(named);
      return update(context, organization, { subject: "organization", id: organization.id }, input);
    },
  }),
  verb({
    name: "findTeamLimits",
    route: "GET /teams/{team}/limits",
    summary: "Show the limits of a team",
    ...shows,
    roles: readers,
    takes: Type.Object(oneTeam),
    example: { takes: { team: examples.team }, answer: limitsExample("team", examples.team) },
    async act(context, input) {
      const { id, organizationId, organization } = await teamNamed(context, input.team, null);
      return limitsNow(context, { subject: "team", id, organizationId }, organization);
    },
  }),
  verb({
    name: "updateTeamLimits",
    route: "PATCH /teams/{team}/limits",
    summary: "Change the limits of a team",
    ...changes,
    takes: Type.Object({ ...oneTeam, ...limitChanges }, someChange),
    example: { takes: { team: examples.team, ...sent }, answer: limitsExample("team", examples.team) },
    async act(context, { team, ...input }) {
      const { id, organizationId } = await teamNamed(context, team, null);
      return update(context, await context.openOrganization(organizationId), { subject: "team", id }, input);
    },
  }),
  verb({
    name: "findKeyLimits",
    route: "GET /keys/{id}/limits",
    summary: "Show the limits of a key",
    ...shows,
    roles: owners,
    onKey: "show",
    takes: Type.Object(oneKey),
    example: { takes: { id: examples.key }, answer: limitsExample("key", examples.key) },
    async act(context, input) {
      const { id, organizationId, organization } = await context.keyOf(input.id);
      return limitsNow(context, { subject: "key", id, organizationId }, organization);
    },
  }),
  verb({
    name: "updateKeyLimits",
    route: "PATCH /keys/{id}/limits",
    summary: "Change the limits of a key",
    ...changes,
    onKey: "limit",
    takes: Type.Object({ ...oneKey, ...limitChanges }, someChange),
    example: { takes: { id: examples.key, ...sent }, answer: limitsExample("key", examples.key) },
    async act(context, { id: named, ...input }) {
      const { id, organizationId, revokedAt } = await context.keyOf(named);
      if (revokedAt) fail(`The key ${id} is revoked and cannot be changed. Create a new one.`, "wrong_state");
      return update(context, await context.openOrganization(organizationId), { subject: "key", id }, input);
    },
  }),
  verb({
    name: "findPersonLimits",
    route: "GET /organizations/{organization}/people/{person}/limits",
    summary: "Show the limits of a person in an organization",
    ...shows,
    description: `${reading} All keys and sign-ins of the person there share them.`,
    roles: owners,
    takes: Type.Object(onePerson),
    example: { takes: { organization: "acme", person: examplePerson }, answer: limitsExample("person", examplePerson) },
    async act(context, input) {
      const person = await personOf(context, input.person);
      const { id: organizationId, slug } = await context.organizationOf(input.organization);
      return limitsNow(context, { subject: "person", id: person.id, organizationId }, slug);
    },
  }),
  verb({
    name: "updatePersonLimits",
    route: "PATCH /organizations/{organization}/people/{person}/limits",
    summary: "Change the limits of a person in an organization",
    ...changes,
    takes: Type.Object({ ...onePerson, ...limitChanges }, someChange),
    example: {
      takes: { organization: "acme", person: examplePerson, ...sent },
      answer: limitsExample("person", examplePerson),
    },
    async act(context, { organization: named, person: given, ...input }) {
      const person = await personOf(context, given);
      const organization = await context.openOrganization(named);
      return update(context, organization, { subject: "person", id: person.id }, input);
    },
  }),
] as const;

const kinds = { keys: "key", teams: "team", people: "person" } as const;
const prefixes = { key: "key", team: "team", person: "per" } as const;

const pageOf = (input: { limit?: number | undefined; cursor?: string | undefined }) => ({
  limit: limitIn(input),
  after: input.cursor,
});

/** Refuses a change of an organization's own limits unless the caller administers the whole service. */
export function requireAdmin({ within }: ManagementContext, input: LimitChanges): void {
  if (within === null) return;
  for (const field of ["own", "models", "raise"] as const)
    if (input[field] !== undefined)
      fail(`The limits '${field}' of an organization are for the role admin. Leave them out.`, "missing_role");
}

/** The own limits with which a new team or key is created. */
export async function newLimits(
  { administration, currency: used }: ManagementContext,
  { id, slug }: Organization,
  { limits, whose }: { limits: LimitValueChanges | null | undefined; whose: "team" | "key" | "person" },
): Promise<Budget> {
  const currency = await used();
  const value = newValue(limits, currency);
  if (limits == null) return value;
  const whole = await administration.limitsOf({ subject: "organization", id, organizationId: id });
  return withinOrganization(value, whole ?? noOrganization(slug), whose, wordsIn(currency));
}

const gone: Record<SubjectLimits["subject"], (id: string) => never> = {
  organization: noOrganization,
  team: noTeam,
  person: noPerson,
  key: noKey,
};

async function found(context: ManagementContext, subject: LimitSubject): Promise<SubjectLimits> {
  return (await context.administration.limitsOf(subject)) ?? gone[subject.subject](subject.id);
}

async function limitsNow(context: ManagementContext, subject: LimitSubject, slug: string): Promise<SubjectLimitsShown> {
  return (await limitsShown(context, [await found(context, subject)], slug))[0]!;
}

async function update(
  context: ManagementContext,
  { id: organizationId, slug }: Organization,
  { subject, id }: Pick<LimitSubject, "subject" | "id">,
  { version, ...changes }: LimitChanges & { version?: number | undefined },
): Promise<SubjectLimitsShown> {
  const { administration, actor, catalog, now_ms } = context;
  const models = changes.models === undefined ? [] : namesOf(await catalog());
  const known = { currency: await context.currency(), now_ms: now_ms(), models };
  const answer = await administration.updateLimits({ subject, id, organizationId }, { actor, version }, (now, whole) =>
    changeOf(changes, now, whole, known),
  );
  return changed(
    context,
    { read: version, id, announced: subject === "team" ? organizationId : id },
    {
      schema: SubjectLimitsShape,
      title: ({ name }) => `The ${subject} '${name ?? id}'`,
      listed: async (now) => (await limitsShown(context, [now], slug))[0]!,
      refusals: { gone: () => gone[subject](id), closed: () => isClosed(slug) },
    },
    answer,
  );
}
