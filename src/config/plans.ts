/** The plans of the default catalog. */
import type { Share } from "../routing/fair-queue.ts";
import { noLimits, type Plan } from "../store/plan.ts";
import type { PlanEntry } from "./schema/plan.ts";

const shareDefaults = { queue_weight: 1, queue_priority: 0 };

/** What a plan limits, by the name in sluice.yaml. */
const limitNames = {
  session: "session",
  week: "week",
  month: "month",
  requests_per_minute: "requestsPerMinute",
  tokens_per_minute: "tokensPerMinute",
  concurrent_requests: "concurrentRequests",
} as const satisfies Record<Exclude<keyof PlanEntry, keyof typeof shareDefaults>, keyof Plan>;

/**
 * `starter` is what an organization gets unasked: a working day with a coding agent fits. `pro` holds ten times as much;
 * `unlimited` limits nothing.
 */
const defaults: Record<string, PlanEntry> = {
  starter: {
    session: 1_000_000_000,
    week: 5_000_000_000,
    month: 16_000_000_000,
    requests_per_minute: 120,
    tokens_per_minute: 2_000_000,
    concurrent_requests: 8,
  },
  pro: {
    session: 10_000_000_000,
    week: 50_000_000_000,
    month: 160_000_000_000,
    requests_per_minute: 1_200,
    tokens_per_minute: 20_000_000,
    concurrent_requests: 64,
  },
  unlimited: {},
};

/** The default plans, with those of the file beside them or in their place. */
export function plansWith(entries: Record<string, PlanEntry>): Map<string, Plan> {
  const all = { ...defaults, ...entries };
  return new Map(Object.entries(all).map(([name, entry]) => [name, planOf(name, entry)]));
}

/** Of the plans that the file writes; all others have one alike. */
export function sharesOf(entries: Record<string, PlanEntry>): Map<string, Share> {
  return new Map(
    Object.entries(entries).map(([name, entry]) => {
      const { queue_weight: weight, queue_priority: priority } = { ...shareDefaults, ...entry };
      return [name, { weight, priority }];
    }),
  );
}

function planOf(name: string, entry: PlanEntry): Plan {
  const plan: Plan = { ...noLimits, name };
  for (const [written, field] of Object.entries(limitNames)) plan[field] = entry[written as keyof PlanEntry] ?? null;
  return plan;
}
