/** Limits of keys and teams as an administrator gives them. Pure. */
import { grouped } from "../../core/inference/amounts.ts";
import { snakeName } from "../../core/schema/codec.ts";
import type { Budget, KeyBudget, Team } from "../../core/store/budget.ts";
import { noBudget } from "../../core/store/budget.ts";
import type { Plan } from "../../core/store/plan.ts";
import { fail } from "./error.ts";

const names = Object.keys(noBudget) as (keyof Budget)[];

export type LimitChanges = { [Name in keyof Budget]?: number | null | undefined };

/** A limit that is named is set, or with null taken away; the others stay. */
export function changedLimits(changes: LimitChanges | null | undefined, before: Budget): Budget {
  const budget = { ...before };
  for (const name of names) {
    const limit = changes?.[name];
    if (limit !== undefined) budget[name] = limit;
  }
  return budget;
}

/** Refuses a limit above the plan's: it would never count, so something else is meant. */
export function withinPlan(budget: Budget, plan: Plan | null, whose: string): Budget {
  for (const name of names) {
    const limit = budget[name];
    const most = plan?.[name] ?? null;
    if (limit !== null && most !== null && limit > most)
      fail(
        `The ${whose}'s limit '${snakeName(name)}' of ${grouped(limit)} is above that of the plan '${plan!.name}', ${grouped(most)}. Choose a lower one.`,
      );
  }
  return budget;
}

/** `week 5,000,000, concurrent_requests 4`; null without any. */
export function limitsInWords(budget: Budget | null): string | null {
  const limited = names.filter((name) => budget?.[name] != null);
  return limited.map((name) => `${snakeName(name)} ${grouped(budget![name]!)}`).join(", ") || null;
}

type Settings = Partial<Pick<Team, "name" | "budget" | "keyDefault" | "memberDefault">> &
  Partial<Pick<KeyBudget, "team">>;

/** The differences in words: `week is 5,000 and was 10,000`. */
export function differencesOf(before: Settings, now: Settings): string[] {
  const wordsOf = (settings: Settings): [string, string][] => [
    ["name", settings.name ?? ""],
    ["team", settings.team?.name ?? "none"],
    ...limitWords(settings.budget, ""),
    ...limitWords(settings.keyDefault, "new keys' "),
    ...limitWords(settings.memberDefault, "each person's "),
  ];
  const was = new Map(wordsOf(before));
  return wordsOf(now).flatMap(([name, is]) =>
    was.get(name) === is ? [] : [`${name} is ${is} and was ${was.get(name)}`],
  );
}

function limitWords(budget: Budget | null | undefined, whose: string): [string, string][] {
  return names.map((name) => {
    const limit = budget?.[name] ?? null;
    return [`${whose}${snakeName(name)}`, limit === null ? "not limited" : grouped(limit)];
  });
}
