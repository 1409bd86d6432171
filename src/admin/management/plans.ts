/**
 * Plans: the limits of organizations, by name. Plans of sluice.yaml can only be read here; other plans are created and
 * changed here.
 */
import Type from "typebox";
import { type Currency, grouped, inWords, type Money, moneyOf, nanosOf } from "../../core/inference/money.ts";
import { Money as MoneyShape, nullable } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { noLimits, type PlanLimits } from "../../core/store/plan.ts";
import { minute } from "../../core/time/written.ts";
import type { NamedEntry } from "../store/administration.ts";
import { shortest } from "../store/amounts.ts";
import { exampleOf } from "../store/example.ts";
import { planFields, type Plan as StoredPlan } from "../store/plan.ts";
import { type LimitName, limitNames } from "../store/shapes.ts";
import { AuditEntries, exampleEntry, partOfAudit } from "./audit.ts";
import { type Column, type Facts, flag } from "./command.ts";
import { type ManagementContext, reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { dollars, type GivenMoney, givenMoney, limitNanos } from "./money.ts";
import * as parse from "./parse.ts";
import { admins, formed, partOfNumbers, readers, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";
import { changed, type VersionedKind } from "./version.ts";

const verb = verbsOf("Plans");

const window = () => nullable(MoneyShape);
const { requests_per_minute, tokens_per_minute, concurrent_requests, ...named } = planFields;
export const Plan = Type.Object(
  {
    ...named,
    session: window(),
    week: window(),
    month: window(),
    requests_per_minute,
    tokens_per_minute,
    concurrent_requests,
  },
  { $id: "Plan", description: "Null: not limited." },
);
export type Plan = Value<typeof Plan>;

const limitsBefore = {
  session: "1.000000000",
  week: "10.000000000",
  month: "40.000000000",
  requests_per_minute: 600,
  tokens_per_minute: null,
  concurrent_requests: 20,
};

const limit = (what: string) =>
  Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: 1e15, description: `${what} Null: no limit.` })));
const moneyLimit = (what: string) => Type.Optional(nullable(givenMoney(`${what} Null: no limit.`)));
const limits = {
  session: moneyLimit("Money for five hours."),
  week: moneyLimit("Money for a week."),
  month: moneyLimit("Money for a month."),
  requests_per_minute: limit("Requests in any 60 seconds."),
  tokens_per_minute: limit("Tokens in any 60 seconds."),
  concurrent_requests: limit("Requests at a time."),
};
const one = { name: words("Name of the plan.") };

const planFlag = flag("<name>", "name of the plan");
const limitWords = (value: Money | number | null) => {
  if (value === null) return "no limit";
  return typeof value === "number" ? grouped(value) : inWords(value);
};

const planColumns: Column<Plan>[] = [
  { head: "PLAN", cell: (plan) => plan.name },
  { head: "SESSION", cell: (plan) => limitWords(plan.session) },
  { head: "WEEK", cell: (plan) => limitWords(plan.week) },
  { head: "MONTH", cell: (plan) => limitWords(plan.month) },
  { head: "REQUESTS/MIN", cell: (plan) => limitWords(plan.requestsPerMinute) },
  { head: "TOKENS/MIN", cell: (plan) => limitWords(plan.tokensPerMinute), optional: true },
  { head: "CONCURRENT", cell: (plan) => limitWords(plan.concurrentRequests), optional: true },
  { head: "SOURCE", cell: (plan) => plan.source, optional: true },
];

function planFacts(plan: Plan): Facts {
  return [
    ...planColumns.map(({ head, cell }) => [head.toLowerCase(), cell(plan, 0)] as const),
    ["version", String(plan.version)],
    ["changed", minute(plan.changedAt) ?? "not in force yet"],
  ];
}

const changeColumns: Column<NamedEntry>[] = [
  { head: "TIME", cell: (entry) => minute(entry.at) ?? "" },
  { head: "ACTOR", cell: (entry) => entry.actor },
  { head: "ACTION", cell: (entry) => entry.action },
  { head: "LIMITS", cell: changedLimits },
];

/** Limits in the form that the audit log has: money is decimal text. */
type WrittenLimits = Partial<Record<LimitName, string | number | null>> | null;

const writtenWords = (value: string | number | null) =>
  typeof value === "string" ? shortest(value) : limitWords(value);

/** The limits that the change behind an entry of the audit log has changed, in words: `session 5, week no limit`. */
function changedLimits({ details }: NamedEntry): string {
  const { limits, before } = details as { limits?: WrittenLimits; before?: WrittenLimits };
  if (!limits) return "removed";
  const differing = limitNames.filter((name) => (limits[name] ?? null) !== (before?.[name] ?? null));
  const from = (name: LimitName) => (before ? `${writtenWords(before[name] ?? null)} → ` : "");
  return (
    differing.map((name) => `${name} ${from(name)}${writtenWords(limits[name] ?? null)}`).join(", ") || "no limits"
  );
}

export const planVerbs = [
  verb({
    name: "listPlans",
    route: "GET /plans",
    summary: "List plans",
    description: "All that are in force.",
    roles: readers,
    faults: [],
    takes: Type.Object({}),
    answers: Type.Object({ data: Type.Array(Plan), next_cursor: nullable(Type.String()) }, { $id: "Plans" }),
    example: { takes: {}, answer: { data: [exampleOf(Plan)], nextCursor: null } },
    command: {
      words: "plan list",
      description: "list all plans",
      columns: planColumns,
      none: "The catalog has no plans. Add one under 'plans:' in sluice.yaml, or run: sluice plan create NAME\n",
    },
    act: async (context) => ({ data: [...(await knownPlans(context)).values()], nextCursor: null }),
  }),
  verb({
    name: "createPlan",
    route: "POST /plans",
    summary: "Create a plan",
    description: "In force on every node within a second. What is left out is not limited.",
    roles: admins,
    kind: "creation",
    faults: ["already_exists", "idempotency_key_reused"],
    takes: Type.Object({
      name: formed(
        /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
        "a name of 1 to 63 letters, digits, and the characters . _ -, with a letter or digit first",
        "1 to 63 letters, digits, and `.`, `_`, `-`.",
      ),
      ...limits,
    }),
    answers: Plan,
    example: {
      takes: { name: "gold", session: "5", concurrent_requests: 20 },
      answer: exampleOf(Plan, { name: "gold", session: dollars(5_000_000_000), concurrentRequests: 20 }),
    },
    command: {
      words: "plan create",
      description: "create a plan; it is in force on every node within a second",
      takes: { name: planFlag },
      limits: flag("--limit", "what it allows; what is left out is not limited"),
      says: planFacts,
      help: `
Examples:
  $ sluice plan create gold --limit session=5,week=20 --limit concurrent_requests=16
  $ sluice org plan acme gold
`,
    },
    async act(context, input) {
      const { name } = input;
      // This check covers only the plans of the file. The store checks its own plans, and recognises a repeated
      // request.
      const isInFile = (await knownPlans(context)).get(name)?.source === "file";
      const made = isInFile
        ? { standsIn: "file" as const }
        : await context.plans.createPlan(
            { ...noLimits, ...limitsIn(input, await context.currency()), name },
            context.actor,
            context.repeatOf("createPlan", input),
          );
      if (made === "reused") return reusedKey();
      if ("standsIn" in made) return nameTaken(name, made.standsIn);
      return "repeated" in made ? foundPlan(context, made.repeated) : shownPlan(context, made);
    },
  }),
  verb({
    name: "findPlan",
    route: "GET /plans/{name}",
    summary: "Show a plan",
    description: "As it is in force.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object(one),
    answers: Plan,
    example: { takes: { name: "pro" }, answer: exampleOf(Plan) },
    command: { words: "plan show", description: "show a plan", takes: { name: planFlag }, says: planFacts },
    act: (context, { name }) => foundPlan(context, name),
  }),
  verb({
    name: "updatePlan",
    route: "PUT /plans/{name}/limits",
    summary: "Change the limits of a plan",
    description:
      "What is left out stays. It counts on every node within a second, for running requests too. A plan of sluice.yaml is changed there.",
    roles: admins,
    kind: "change",
    faults: ["resource_not_found", "wrong_state", "version_conflict"],
    takes: Type.Object({ ...one, ...limits }),
    answers: Plan,
    example: {
      takes: { name: "pro", week: "5" },
      answer: exampleOf(Plan, { week: dollars(5_000_000_000), version: 2 }),
    },
    command: {
      words: "plan update",
      description: "change the limits of a plan; they count at once, for running requests too",
      takes: { name: planFlag },
      limits: flag("--limit", "what it allows; what is left out stays"),
      versioned: "plan",
      says: planFacts,
    },
    async act(context, input) {
      const { name, version } = input;
      const limits = limitsIn(input, await context.currency());
      const updated = await context.plans.updatePlan(name, limits, context.actor, version);
      return changed(context, { read: version, id: name, announced: null }, listedPlan(context, name), updated);
    },
  }),
  verb({
    name: "removePlan",
    route: "POST /plans/{name}/remove",
    summary: "Remove a plan",
    description: "Refused while an organization is on it. Returns the plan as it was.",
    roles: admins,
    kind: "change",
    faults: ["resource_not_found", "wrong_state", "version_conflict"],
    takes: Type.Object(one),
    answers: Plan,
    example: { takes: { name: "pro" }, answer: exampleOf(Plan) },
    command: {
      words: "plan remove",
      description: "remove a plan that no organization is on",
      takes: { name: planFlag },
      says: ({ name }) => `Removed plan '${name}'.\n`,
    },
    async act(context, { name, version }) {
      const removed = await context.plans.removePlan(name, context.actor, version);
      if (removed === null || typeof removed === "string" || !("organizations" in removed))
        return changed(context, { read: version, id: name, announced: null }, listedPlan(context, name), removed);
      const { organizations, slugs } = removed;
      const users = slugs.length < organizations ? [...slugs, "…"] : slugs;
      return fail(
        `Plan '${name}' is used by ${organizations} organization${organizations === 1 ? "" : "s"}: ${users.join(", ")}. To move them, run: sluice org plan ORG PLAN`,
        "wrong_state",
      );
    },
  }),
  verb({
    name: "planHistory",
    route: "GET /plans/{name}/history",
    summary: "Read the history of a plan",
    description: "The audit log's entries about it, newest first, also of a plan of sluice.yaml or a removed one.",
    roles: ["admin", "viewer"],
    faults: ["resource_not_found"],
    takes: Type.Object({ ...one, ...partOfNumbers() }),
    answers: AuditEntries,
    example: {
      takes: { name: "pro" },
      answer: {
        data: [
          {
            ...exampleEntry,
            action: "plan.update",
            organizationId: null,
            organization: null,
            subject: "pro",
            subjectName: null,
            details: { source: "management", limits: { ...limitsBefore, week: "5.000000000" }, before: limitsBefore },
          },
        ],
        nextCursor: null,
      },
    },
    command: {
      words: "plan history",
      description: "show the changes of a plan, newest first",
      takes: {
        name: flag("<name>", "name of the plan, also of one that was removed"),
        limit: flag("--limit <n>", "number of changes, 1 to 1000 (default: 100)"),
      },
      columns: changeColumns,
      none: "It has not changed since it came into force.\n",
    },
    async act(context, input) {
      const page = await partOfAudit(context.administration, { plan: input.name }, input);
      if (page.data.length === 0 && input.cursor === undefined) await foundPlan(context, input.name);
      return page;
    },
  }),
] as const;

/** The plans in force, by name. */
async function knownPlans({ catalog, plans }: ManagementContext): Promise<Map<string, Plan>> {
  const { plans: ofFile, billing } = await catalog();
  const ofCatalog = [...ofFile.values()].map(
    (plan): StoredPlan => ({ ...plan, source: "file", version: 1, changedAt: null }),
  );
  const all = [...ofCatalog, ...(await plans.listPlans())];
  return new Map(all.map((plan) => [plan.name, planShown(plan, billing.currency)]));
}

async function foundPlan(context: ManagementContext, name: string): Promise<Plan> {
  const plans = await knownPlans(context);
  const names = [...plans.keys()].join(", ");
  return (
    plans.get(name) ??
    fail(`There is no plan '${parse.excerpt(name)}'. The catalog has: ${names}.`, "resource_not_found")
  );
}

/** Refuses to change a plan that the store does not have. The plan is in a file, or does not exist. */
async function notManaged(context: ManagementContext, name: string): Promise<never> {
  await foundPlan(context, name);
  return inFile(name);
}

function planShown({ session, week, month, ...plan }: StoredPlan, currency: Currency): Plan {
  const money = (nanos: number | null) => (nanos === null ? null : moneyOf(nanos, currency));
  return { ...plan, session: money(session), week: money(week), month: money(month) };
}

async function shownPlan(context: ManagementContext, plan: StoredPlan): Promise<Plan> {
  return planShown(plan, await context.currency());
}

/** The limits of a plan in the units of the ledger: money in nanos. */
export function countedLimits({ session, week, month, ...rest }: Plan): PlanLimits {
  const nanos = (money: Money | null) => money && Number(nanosOf(money));
  const { requestsPerMinute, tokensPerMinute, concurrentRequests } = rest;
  const windows = { session: nanos(session), week: nanos(week), month: nanos(month) };
  return { ...windows, requestsPerMinute, tokensPerMinute, concurrentRequests };
}

const limitKeys = Object.keys(noLimits).filter((key): key is keyof PlanLimits => key !== "name");

function limitsIn(
  input: { [Limit in keyof PlanLimits]?: GivenMoney | number | null },
  currency: Currency,
): Partial<PlanLimits> {
  const given = limitKeys.filter((key) => input[key] !== undefined);
  const counted = (key: keyof PlanLimits) => {
    const value = input[key]!;
    return value === null || typeof value === "number" ? value : limitNanos(value, currency, key);
  };
  return Object.fromEntries(given.map((key) => [key, counted(key)]));
}

function nameTaken(name: string, source: Plan["source"]): never {
  const next = source === "file" ? "in sluice.yaml or among the defaults" : "already; to change it, update it";
  return fail(`There is a plan '${name}' ${next}. A name stands in one place only.`, "already_exists");
}

function inFile(name: string): never {
  return fail(
    `Plan '${name}' stands in sluice.yaml or among the defaults. Change it there, and reload.`,
    "wrong_state",
  );
}

const listedPlan = (context: ManagementContext, name: string): VersionedKind<StoredPlan, typeof Plan, "of_file"> => ({
  schema: Plan,
  title: (now) => `Plan '${now.name}'`,
  listed: (now) => shownPlan(context, now),
  refusals: { gone: () => notManaged(context, name), of_file: () => inFile(name) },
});
