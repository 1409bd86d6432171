/**
 * The book against itself, once an hour: the totals of windows that began lately beside the sums of their records. The
 * hours looked at reach back so far that each session is looked at once more after its end. All windows of a year are
 * compared by `sluice usage check`: that reads every record, which is too much for a timer.
 */
import type { Ledger, LedgerDifference } from "../store/ledger.ts";
import { repeating } from "../time/repeating.ts";

export interface BookCheck {
  /** Totals that differed at the last look; NaN before the first. */
  differences(): number;
  stop(): Promise<void>;
}

const every_ms = 3_600_000;
const first_ms = 60_000;
const recent_hours = 6;

export function bookCheck(parts: {
  ledger: Pick<Ledger, "check">;
  /** Told of each look that found some. */
  found: (differences: LedgerDifference[]) => void;
  failed: (cause: unknown) => void;
  times_ms?: { first: number; every: number };
}): BookCheck {
  let count = Number.NaN;
  const looks = repeating(look, parts.times_ms ?? { first: first_ms, every: every_ms });

  async function look(): Promise<void> {
    try {
      const differences = await parts.ledger.check(recent_hours);
      count = differences.length;
      if (count > 0) parts.found(differences);
    } catch (cause) {
      parts.failed(cause);
    }
  }

  return { differences: () => count, stop: looks.stop };
}
