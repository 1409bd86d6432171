/**
 * Settles the holds (reserved amounts of requests) of nodes that no longer run: any node does it, every `sweep_ms`. In
 * two cases a sweeper waits one lease first (docs/design/metering.md, Rule 6: Any node recovers):
 *
 * - The sweeper was cut off from the store, or has heard from the store for the first time. Other nodes may have been
 *   cut off too, and settle their own requests now.
 * - The store's clock was set, so that leases may only seem to have lapsed. Meanwhile running requests
 *   extend their leases by the new clock.
 */
import type { ClockRange, Ledger } from "../store/ledger.ts";
import { type Clock, type Repeating, repeating } from "../time/clock.ts";
import { leaseMargin_ms } from "./lease.ts";

interface RecoverySettings {
  sweep_ms: number;
  lease_ms: number;
  /** The most holds (amounts reserved for requests) that one transaction settles. */
  recovered_max: number;
}

interface RecoveryParts {
  ledger: Pick<Ledger, "recover">;
  clock: Clock;
  /** Called with the number of holds that a sweep has settled, if there were any. */
  recovered?: ((count: number) => void) | undefined;
  failed?: ((error: unknown) => void) | undefined;
}

export function recovery(parts: RecoveryParts, settings: RecoverySettings): Repeating {
  const { ledger, clock } = parts;
  // Changes of the store's clock by less than half the lease margin are tolerated: with them, no lease ends before its
  // node has stopped forwarding by its own deadline.
  const store = storeClock(leaseMargin_ms(settings.lease_ms) / 2);
  let begunAt_ms = clock.now_ms();
  let answeredAt_ms = begunAt_ms;
  let stopped = false;
  const sweeps = repeating(sweep, { every: settings.sweep_ms }, clock);

  async function sweep(): Promise<void> {
    try {
      const now_ms = clock.now_ms();
      // A sweeper that was frozen, or waited long for its last answer, may have been cut off, and waits one lease
      // again.
      if (now_ms - answeredAt_ms > 2 * settings.sweep_ms + settings.lease_ms / 2) begunAt_ms = now_ms;
      const due = now_ms - begunAt_ms >= settings.lease_ms;
      let count = await recover(due ? settings.recovered_max : 0);
      let total = count;
      while (due && count === settings.recovered_max && !stopped) {
        count = await recover(settings.recovered_max);
        total += count;
      }
      if (total > 0) parts.recovered?.(total);
    } catch (error) {
      parts.failed?.(error);
      begunAt_ms = clock.now_ms();
    }
  }

  async function recover(limit: number): Promise<number> {
    const sentAt_ms = clock.now_ms();
    const range = store.range(sentAt_ms);
    const { settled, at } = await ledger.recover(range ? limit : 0, range ?? undefined);
    answeredAt_ms = clock.now_ms();
    const wasSet = store.wasSet(at, sentAt_ms, answeredAt_ms);
    // After the first answer the sweeper waits one lease again: `wasSet` needs an earlier answer to compare it with.
    if (wasSet || !range) begunAt_ms = answeredAt_ms;
    return settled;
  }

  return {
    stop() {
      stopped = true;
      return sweeps.stop();
    },
  };
}

/** Compares the store's clock with the node's own monotonic one, which nobody sets. */
function storeClock(tolerance_ms: number) {
  let last: { at_ms: number; sentAt_ms: number; heardAt_ms: number } | null = null;
  return {
    /** The range of the store's clock when a message that is sent now arrives; null before the store's first answer. */
    range: (now_ms: number): ClockRange | null =>
      last && {
        earliest: new Date(last.at_ms + (now_ms - last.heardAt_ms) - tolerance_ms),
        latest: new Date(last.at_ms + (now_ms - last.sentAt_ms) + tolerance_ms),
      },
    /** Whether the store's clock, which showed `at` in between, was set since the last answer, beyond the tolerance. */
    wasSet(at: Date, sentAt_ms: number, heardAt_ms: number): boolean {
      const at_ms = at.getTime();
      const went_ms = last ? at_ms - last.at_ms : 0;
      const [least_ms, most_ms] = last ? [sentAt_ms - last.heardAt_ms, heardAt_ms - last.sentAt_ms] : [0, 0];
      last = { at_ms, sentAt_ms, heardAt_ms };
      return went_ms > most_ms + tolerance_ms || went_ms < least_ms - tolerance_ms;
    },
  };
}
