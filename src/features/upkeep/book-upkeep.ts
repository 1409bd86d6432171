/**
 * Maintains the usage tables once an hour. A step whose lock would have made other queries wait is tried again an hour
 * later.
 */
import { repeating } from "../../core/time/clock.ts";
import type { Books } from "./store/books.ts";

const every_ms = 3_600_000;
const first_ms = 5_000;

export function bookUpkeep(parts: {
  ledger: Pick<Books, "maintain">;
  /** Called with the steps of the maintenance that were put off by an hour. */
  putOff: (what: string[]) => void;
  failed: (cause: unknown) => void;
  times_ms?: { first: number; every: number };
}) {
  let ahead = Number.NaN;
  const rounds = repeating(round, parts.times_ms ?? { first: first_ms, every: every_ms });

  async function round(): Promise<void> {
    try {
      const { monthsAhead, putOff, failure } = await parts.ledger.maintain();
      ahead = monthsAhead;
      if (putOff.length > 0) parts.putOff(putOff);
      if (failure !== undefined) parts.failed(failure);
    } catch (cause) {
      parts.failed(cause);
    }
  }

  return {
    /** The number of coming months that have a partition for their records; NaN before the first run. */
    monthsAhead: () => ahead,
    stop: rounds.stop,
  };
}
