// The changes in a history (a simulated run) that are not faults of nodes or wires: an administrator decides something
// while requests run, clocks are set, the store stands still, or a failover sets the store back to the past.

import { type Calendar, weekDays } from "../../src/admin/store/calendar.ts";
import type { WindowKind } from "../../src/core/store/ledger.ts";
import type { Plan } from "../../src/core/store/plan.ts";
import type { Chance } from "../faults/chance.ts";
import { type BudgetChange, budgetChangeOf } from "./budgets.ts";
import { betweenOf, spread } from "./chances.ts";

export type ChangePlan =
  /** An organization's plan gets other limits. */
  | { at_ms: number; kind: "plan"; organization: number; plan: Plan }
  | { at_ms: number; kind: "anchor"; organization: number; anchor_ms: number }
  | { at_ms: number; kind: "calendar"; organization: number; calendar: Calendar | null }
  /** An operator's entry changes a total by hand; the entry may be sent again. */
  | {
      at_ms: number;
      kind: "adjust";
      organization: number;
      window: WindowKind | "extra";
      nanos: number;
      again_ms: number | null;
    }
  /** The key of this organization's requests is revoked. */
  | { at_ms: number; kind: "revoke"; organization: number }
  /**
   * A key, a person or a team gets other limits or a raise, for all models or some; or a key moves to another team, or
   * a person to another team or organization.
   */
  | ({ at_ms: number; organization: number } & BudgetChange)
  /** The store's clock is set, forward or back. */
  | { at_ms: number; kind: "clock"; by_ms: number }
  /**
   * The store does nothing for a while, and then carries out all that came meanwhile, as when a table is locked or the
   * machine is paused.
   */
  | { at_ms: number; kind: "stall"; for_ms: number }
  /** The store and all nodes do nothing for a while. */
  | { at_ms: number; kind: "pause"; for_ms: number }
  /** A replica takes the store's place. It lacks what was confirmed in the last `lost_ms` milliseconds. */
  | { at_ms: number; kind: "failover"; for_ms: number; lost_ms: number };

export const changeKinds = [
  "plan",
  "plan",
  "plan",
  "anchor",
  "calendar",
  "calendar",
  "adjust",
  "revoke",
  "budget",
  "budget",
  "team",
  "team",
  "person",
  "person",
  "person",
  "raise",
  "raise",
  "raise",
  "models",
  "models",
  "models",
  "clock",
  "clock",
  "stall",
  "pause",
  "failover",
] as const;
const hour_ms = 3_600_000;

export function changeOf(chance: Chance, organizations: readonly { plan: Plan }[]): ChangePlan {
  const between = betweenOf(chance);
  const at_ms = between(1, 20_000);
  const organization = chance.below(organizations.length);
  const kind = chance.pick(changeKinds);
  switch (kind) {
    case "plan":
      return { at_ms, kind, organization, plan: planOf(chance, organizations[organization]!.plan) };
    case "anchor":
      return { at_ms, kind, organization, anchor_ms: Date.UTC(2026, between(0, 10), between(1, 31), between(0, 23)) };
    case "calendar":
      return { at_ms, kind, organization, calendar: chance.next() < 0.2 ? null : calendarOf(chance) };
    case "adjust": {
      const window = chance.pick(["session", "week", "month", "extra"] as const);
      const nanos = chance.pick([-1, 1]) * spread(chance, 10, 200_000);
      return {
        at_ms,
        kind,
        organization,
        window,
        nanos,
        again_ms: chance.next() < 0.6 ? spread(chance, 20, 8_000) : null,
      };
    }
    case "revoke":
      return { at_ms, kind, organization };
    case "budget":
    case "team":
    case "person":
    case "raise":
    case "models":
      return { at_ms, organization, ...budgetChangeOf(chance, kind) };
    case "clock": {
      const far_ms = chance.pick([6 * hour_ms, 6 * hour_ms, spread(chance, 100, hour_ms)]);
      return { at_ms, kind, by_ms: chance.pick([-1, 1]) * far_ms };
    }
    case "stall":
    case "pause":
      return { at_ms, kind, for_ms: spread(chance, 200, 20_000) };
    case "failover":
      return { at_ms, kind, for_ms: spread(chance, 50, 6_000), lost_ms: spread(chance, 20, 3_000) };
  }
}

/**
 * A calendar in one of a few zones: one whose clocks change in November, and others whose days begin when windows do in
 * many histories (scenario.ts).
 */
export function calendarOf(chance: Chance): Calendar {
  return {
    zone: chance.pick(["Pacific/Honolulu", "Pacific/Kiritimati", "America/New_York", "Asia/Kathmandu"]),
    weekStarts: chance.pick(weekDays),
    monthStarts: chance.pick([1, 15, 21, 22, 30, 31]),
  };
}

/** A plan with other limits: most are lowered; some are raised or removed. */
function planOf(chance: Chance, plan: Plan): Plan {
  const limit = (was: number | null) => {
    const dice = chance.next();
    if (dice < 0.25) return was;
    if (dice < 0.35) return null;
    return spread(chance, 1_000, 300_000);
  };
  const { session, week, month, concurrentRequests } = plan;
  return {
    ...plan,
    session: limit(session),
    week: limit(week),
    month: limit(month),
    concurrentRequests: chance.next() < 0.3 ? 1 + chance.below(8) : concurrentRequests,
  };
}
