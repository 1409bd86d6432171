// Raises in histories (simulated runs): temporary increases of limits of keys, people, teams and organizations, in
// force until an instant of the store's clock (docs/design/usage.md, Raises).

import type { UsageLimits } from "../../src/core/store/ledger.ts";
import type { ModelRaise, OwnLimits } from "../core/store/budget-model.ts";
import type { Chance } from "../faults/chance.ts";
import { spread } from "./chances.ts";

/** A change that sets or ends a raise. */
export interface RaiseChange {
  kind: "raise";
  /** Selects the owner of the raise: the organization, or one of the limited subjects in it. */
  subject: number;
  /**
   * The factor by which the limits of windows rise, and the number by which the requests at a time rise; a limit whose
   * field is null does not rise. Null as a whole ends the raise in force.
   */
  by: UsageLimits | null;
  for_ms: number;
}

export function raiseChangeOf(chance: Chance): RaiseChange {
  const times = () => (chance.next() < 0.8 ? 1 + 20 * chance.next() : null);
  const limits = { session: times(), week: times(), month: times(), concurrentRequests: 1 + chance.below(4) };
  const by = chance.next() < 0.85 ? limits : null;
  return { kind: "raise", subject: chance.below(16), by, for_ms: spread(chance, 300, 15_000) };
}

/** The subjects that may have a raise: the id of each, and its limits without the raise. */
export type Raisable = readonly (readonly [id: string, below: UsageLimits])[];

/** The limits after a change of raises; the object `now` itself if there is no raise to end. */
export function raised(now: OwnLimits, raisable: Raisable, change: RaiseChange, clock_ms: number): OwnLimits {
  const [id, below] = raisable[change.subject % raisable.length]!;
  const raises = new Map(now.raises);
  if (!change.by) return raises.delete(id) ? { ...now, raises } : now;
  const { by, for_ms } = change;
  const above = (kind: "session" | "week" | "month") =>
    below[kind] === null || by[kind] === null ? null : Math.round(below[kind] * by[kind]);
  const concurrentRequests = (below.concurrentRequests ?? 0) + (by.concurrentRequests ?? 0);
  const limits = { session: above("session"), week: above("week"), month: above("month"), concurrentRequests };
  return { ...now, raises: raises.set(id, { limits, until_ms: clock_ms + for_ms }) };
}

/** The subjects whose raises have ended after an instant of the store's clock. */
export function endedSince(raises: OwnLimits["raises"], from_ms: number, clock_ms: number): string[] {
  return [...(raises ?? [])].flatMap(([id, { until_ms }]) => (until_ms > from_ms && until_ms <= clock_ms ? [id] : []));
}

/** The time until the next raise ends; null if no raise is in force. */
export function nextEndIn_ms(raises: readonly ModelRaise[], clock_ms: number): number | null {
  const ahead = raises.map(({ until_ms }) => until_ms - clock_ms).filter((in_ms) => in_ms > 0);
  return ahead.length === 0 ? null : Math.min(...ahead);
}
