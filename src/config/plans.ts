/** The plans of the default catalog. */
import { nano_decimals } from "../core/inference/money.ts";
import type { Share } from "../core/routing/fair-queue.ts";
import { noLimits, type Plan } from "../core/store/plan.ts";
import { checkedAmount } from "./amount.ts";
import { type PlanEntry, Plan as PlanRow } from "./settings/plan.ts";
import { filled } from "./settings/row.ts";

/** The limits of a plan: the key is a limit's name in sluice.yaml, and the value is its name in a `Plan`. */
const limitNames = {
  session: "session",
  week: "week",
  month: "month",
  requests_per_minute: "requestsPerMinute",
  tokens_per_minute: "tokensPerMinute",
  concurrent_requests: "concurrentRequests",
} as const satisfies Record<Exclude<keyof PlanEntry, "queue_weight" | "queue_priority">, keyof Plan>;

/**
 * The built-in plans. `starter`, which organizations get if none is named, suffices for a working day with a coding
 * agent. `pro` has amounts ten times those of `starter`; `unlimited` has no limits.
 */
const defaults: Record<string, PlanEntry> = {
  starter: {
    session: "1",
    week: "5",
    month: "16",
    requests_per_minute: 120,
    tokens_per_minute: 2_000_000,
    concurrent_requests: 8,
  },
  pro: {
    session: "10",
    week: "50",
    month: "160",
    requests_per_minute: 1_200,
    tokens_per_minute: 20_000_000,
    concurrent_requests: 64,
  },
  unlimited: {},
};

/** The built-in plans and those of the file. A plan of the file replaces the built-in plan with the same name. */
export function plansWith(entries: Record<string, PlanEntry>): Map<string, Plan> {
  const all = { ...defaults, ...entries };
  return new Map(Object.entries(all).map(([name, entry]) => [name, planOf(name, entry)]));
}

/**
 * For the name of each plan in the file, its share of the engines' queues (weight and priority). Other plans have the
 * default share.
 */
export function sharesOf(entries: Record<string, PlanEntry>): Map<string, Share> {
  return new Map(
    Object.entries(entries).map(([name, entry]) => {
      const { queue_weight, queue_priority } = filled(PlanRow.properties, entry);
      return [name, { weight: queue_weight, priority: queue_priority }];
    }),
  );
}

function planOf(name: string, entry: PlanEntry): Plan {
  const plan: Plan = { ...noLimits, name };
  for (const [written, field] of Object.entries(limitNames)) {
    const limit = entry[written as keyof PlanEntry] ?? null;
    plan[field] = typeof limit === "string" ? checkedAmount(limit, nano_decimals) : limit;
  }
  return plan;
}
