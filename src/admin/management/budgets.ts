/** Limits of single keys, and of the keys to come (docs/design/usage.md, Budgets). */
import Type from "typebox";
import type { Value } from "../../core/schema/codec.ts";
import { type Budget, noBudget, type KeyBudget as StoredBudget } from "../../core/store/budget.ts";
import type { Key as StoredKey } from "../../core/store/directory.ts";
import { type ManagementContext, noKey } from "./context.ts";
import { exampleKey, keyFields } from "./key.ts";
import { changedLimits, differencesOf } from "./limits.ts";
import { staleOrganization } from "./organizations.ts";
import { partFrom } from "./page.ts";
import { raiseNow } from "./raise.ts";
import {
  examples,
  id,
  Limits,
  limitChanges,
  limitIn,
  managers,
  nullable,
  oneOrganization,
  partOf,
  partOfIds,
  readers,
  words,
} from "./shapes.ts";
import { exampleStanding, standing, withStanding, withStandings } from "./standing.ts";
import { noTeam, teamNamed } from "./team.ts";
import { allowed, defaultShape, defaultShown, exampleDefault, keyDefaultOf } from "./team-limits.ts";
import { verbsOf } from "./verb.ts";
import { conflict, lastChange, overtaken, stale } from "./version.ts";

const verb = verbsOf("Keys");

export const BudgetedKey = Type.Object(
  {
    ...keyFields,
    team: nullable(Type.Object({ id: id("team"), name: Type.String() })),
    limits: Limits,
    standing: standing(),
    raise: raiseNow(),
  },
  { $id: "BudgetedKey" },
);
export type BudgetedKey = Value<typeof BudgetedKey>;

export const KeyDefault = defaultShape(
  "KeyDefault",
  "What a new key of the organization gets, unless its team says otherwise.",
);

const limits: Budget = { ...noBudget, session: 20_000_000, requestsPerMinute: 60, concurrentRequests: 4 };
const exampleBudget: BudgetedKey = {
  ...exampleKey,
  team: { id: examples.team, name: "research" },
  limits,
  standing: exampleStanding,
  raise: null,
};
const changes = () => limitChanges("What is left out stays; null takes a limit away.");
const oneKey = { id: words("ID of the key.") };

export const budgetVerbs = [
  verb({
    name: "pageKeyBudgets",
    route: "GET /key-budgets",
    summary: "List keys with their teams and limits",
    description: "Of all organizations or of one, in the order in which they were created.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object({ ...partOfIds("key"), organization: Type.Optional(words("Slug or ID.")) }),
    answers: partOf(BudgetedKey, "BudgetedKeys"),
    example: { takes: {}, answer: { data: [exampleBudget], nextCursor: null } },
    async act(context, input) {
      const { administration, narrowedTo, withSlugs } = context;
      const organizationId = await narrowedTo(input.organization);
      const found = await administration.pageKeys({ limit: limitIn(input), after: input.cursor, organizationId });
      const budgets = await administration.keyBudgets(found.items.map(({ id }) => id));
      const records = (await withStandings(context, await withSlugs(found.items))).map((key): BudgetedKey => {
        const { team, budget } = budgets.get(key.id) ?? { team: null, budget: noBudget };
        return { ...key, team, limits: budget };
      });
      return partFrom(found, records, ({ id }) => id);
    },
  }),
  verb({
    name: "findKeyBudget",
    route: "GET /keys/{id}/budget",
    summary: "Show the team and the limits of a key",
    description: "With what it has used of them, and everything else about the key except its secret.",
    roles: readers,
    onKey: "show",
    faults: ["resource_not_found"],
    takes: Type.Object(oneKey),
    answers: BudgetedKey,
    example: { takes: { id: examples.key }, answer: exampleBudget },
    async act(context, input) {
      const key = await context.keyOf(input.id);
      return budgetedKey(context, key, await context.administration.keyBudget(key.id));
    },
  }),
  verb({
    name: "updateKeyBudget",
    route: "PATCH /keys/{id}/budget",
    summary: "Change the team or the limits of a key",
    description: "They count at once, for running requests too. Running requests count where they were admitted.",
    roles: managers,
    onKey: "limit",
    kind: "change",
    faults: ["resource_not_found", "wrong_state", "version_conflict"],
    takes: Type.Object({
      ...oneKey,
      team: Type.Optional(nullable(words("ID or name of a team of its organization. Null: none."))),
      limits: Type.Optional(nullable(changes())),
    }),
    answers: BudgetedKey,
    example: { takes: { id: examples.key, limits: { session: 20_000_000 } }, answer: exampleBudget },
    async act(context, input) {
      const { administration, actor, announce, keyOf, openOrganization } = context;
      const key = await keyOf(input.id);
      const organization = await openOrganization(key.organizationId);
      const before = await administration.keyBudget(key.id);
      const refuse = async (now: StoredKey, budget: StoredBudget) => {
        const last = await lastChange(administration, { id: organization.id, subject: key.id });
        const read = input.version ?? key.version;
        return stale(`Key '${now.name}'`, { read, last }, BudgetedKey, await budgetedKey(context, now, budget));
      };
      if (input.version !== undefined && key.version !== input.version) return refuse(key, before);
      const budget = await allowed(context, organization, changedLimits(input.limits, before.budget), "key");
      const team = input.team == null ? null : await teamNamed(context, input.team, organization);
      const teamId = input.team === undefined ? (before.team?.id ?? null) : (team?.id ?? null);
      const subject = { id: key.id, version: input.version ?? null };
      const updated = await administration.setKeyBudget(subject, before, { teamId, budget }, actor);
      if (updated === null) return team ? noTeam(team.id) : noKey(key.id);
      if ("now" in updated) {
        const now = await keyOf(key.id);
        const differences = differencesOf(before, updated.now);
        // Where the version alone differs, something else of the key was changed.
        if (differences.length === 0) return refuse(now, updated.now);
        return conflict(overtaken("key", differences), BudgetedKey, await budgetedKey(context, now, updated.now));
      }
      await announce(key.id);
      return budgetedKey(context, await keyOf(key.id), updated);
    },
  }),
  verb({
    name: "findKeyDefault",
    route: "GET /organizations/{organization}/key-limits",
    summary: "Show the limits that new keys get",
    description: "Unless their team says otherwise.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object(oneOrganization),
    answers: KeyDefault,
    example: { takes: { organization: "acme" }, answer: exampleDefault(limits) },
    async act({ administration, organizationOf }, input) {
      const organization = await organizationOf(input.organization);
      return defaultShown(organization, await administration.keyDefault(organization.id));
    },
  }),
  verb({
    name: "updateKeyDefault",
    route: "PATCH /organizations/{organization}/key-limits",
    summary: "Change the limits that new keys get",
    description: "Keys that exist keep theirs.",
    roles: managers,
    kind: "change",
    faults: ["resource_not_found", "wrong_state", "version_conflict"],
    takes: Type.Object({ ...oneOrganization, limits: changes() }),
    answers: KeyDefault,
    example: { takes: { organization: "acme", limits: { session: 20_000_000 } }, answer: exampleDefault(limits) },
    async act(context, input) {
      const { administration, actor, openOrganization, organizationOf } = context;
      const organization = await openOrganization(input.organization);
      const before = await administration.keyDefault(organization.id);
      const limits = await keyDefaultOf(context, organization, input.limits, before);
      const overtakenBy = await administration.setKeyDefault(organization.id, limits, actor, input.version ?? null);
      const current = await organizationOf(organization.id);
      if (!overtakenBy) return defaultShown(current, limits);
      return staleOrganization(administration, current, input.version);
    },
  }),
] as const;

async function budgetedKey(
  context: ManagementContext,
  key: StoredKey,
  { team, budget }: StoredBudget,
): Promise<BudgetedKey> {
  const one = await withStanding(context, await context.withSlug(key));
  return { ...one, team: team && { id: team.id, name: team.name }, limits: budget };
}
