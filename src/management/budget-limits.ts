/** Limits of keys and teams as an administrator gives them. Pure. */
import type { Budget, KeyBudget, Team } from "../store/budget.ts";
import { units_max } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

/** The names that plans use in sluice.yaml, too. */
export const limitNames = {
  session: "session",
  week: "week",
  month: "month",
  requests_per_minute: "requestsPerMinute",
  tokens_per_minute: "tokensPerMinute",
  concurrent_requests: "concurrentRequests",
} as const satisfies Record<string, keyof Budget>;
export type LimitName = keyof typeof limitNames;
export type LimitChanges = Partial<Record<LimitName, number | null>>;

const known = Object.keys(limitNames) as LimitName[];

/** What is named is set, or with null taken away; all else stays. */
export function changedLimits(changes: unknown, before: Budget): Budget {
  if (parse.isAbsent(changes)) return { ...before };
  if (typeof changes !== "object" || Array.isArray(changes)) fail(`Specify limits by name: ${known.join(", ")}.`);
  const budget = { ...before };
  for (const [name, value] of Object.entries(changes)) {
    const field = known.includes(name as LimitName) ? limitNames[name as LimitName] : undefined;
    if (!field) fail(`There is no limit '${parse.excerpt(name)}'. The limits are: ${known.join(", ")}.`);
    budget[field] = value === null ? null : parse.count(value, units_max, `The limit '${name}'`);
  }
  return budget;
}

/** A limit above the plan's would never count, and whoever sets it means something else. */
export function withinPlan(budget: Budget, plan: Plan | null, whose: string): void {
  for (const name of known) {
    const limit = budget[limitNames[name]];
    const most = plan?.[limitNames[name]] ?? null;
    if (limit !== null && most !== null && limit > most)
      fail(
        `The ${whose}'s limit '${name}' of ${grouped(limit)} is above that of the plan '${plan!.name}', ${grouped(most)}. Choose a lower one.`,
      );
  }
}

type Settings = Partial<Pick<Team, "name" | "budget" | "keyDefault">> & Partial<Pick<KeyBudget, "team">>;

/** What somebody else has changed, in words: `week is 5,000 and was 10,000`. */
export function differencesOf(before: Settings, now: Settings): string[] {
  const wordsOf = (settings: Settings): [string, string][] => [
    ["name", settings.name ?? ""],
    ["team", settings.team?.name ?? "none"],
    ...limitWords(settings.budget, ""),
    ...limitWords(settings.keyDefault, "new keys' "),
  ];
  const was = new Map(wordsOf(before));
  return wordsOf(now).flatMap(([name, is]) =>
    was.get(name) === is ? [] : [`${name} is ${is} and was ${was.get(name)}`],
  );
}

const grouped = (limit: number) => limit.toLocaleString("en-US");

function limitWords(budget: Budget | null | undefined, whose: string): [string, string][] {
  return known.map((name) => {
    const limit = budget?.[limitNames[name]] ?? null;
    return [`${whose}${name}`, limit === null ? "not limited" : grouped(limit)];
  });
}
