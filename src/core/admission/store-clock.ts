/**
 * Compares the store's clock with the node's own monotonic one, to find out whether the store's clock was set forward
 * or back since the store last answered. Pure.
 */
import type { ClockRange } from "../store/ledger.ts";

export interface StoreClock {
  /**
   * The earliest and the latest time that the store's clock may show when a message that is sent now arrives at the
   * store; null before the store's first answer.
   */
  range(now_ms: number): ClockRange | null;
  /**
   * Reports whether the store's clock was set since the last answer, by more than `tolerance_ms`. The store's clock
   * showed `at` at some moment between `sentAt_ms` and `heardAt_ms`.
   */
  wasSet(at: Date, sentAt_ms: number, heardAt_ms: number): boolean;
}

export function storeClock(tolerance_ms: number): StoreClock {
  let last: { at_ms: number; sentAt_ms: number; heardAt_ms: number } | null = null;
  return {
    range: (now_ms) =>
      last && {
        earliest: new Date(last.at_ms + (now_ms - last.heardAt_ms) - tolerance_ms),
        latest: new Date(last.at_ms + (now_ms - last.sentAt_ms) + tolerance_ms),
      },
    wasSet(at, sentAt_ms, heardAt_ms) {
      const at_ms = at.getTime();
      const went_ms = last ? at_ms - last.at_ms : 0;
      const [least_ms, most_ms] = last ? [sentAt_ms - last.heardAt_ms, heardAt_ms - last.sentAt_ms] : [0, 0];
      last = { at_ms, sentAt_ms, heardAt_ms };
      return went_ms > most_ms + tolerance_ms || went_ms < least_ms - tolerance_ms;
    },
  };
}
