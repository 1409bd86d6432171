/** The upkeep of the book, once an hour. What could not be done without keeping others waiting is tried an hour later. */
import type { Ledger } from "../store/ledger.ts";
import { repeating } from "../time/repeating.ts";

export interface BookUpkeep {
  /** Coming months whose records have their place; NaN before the first look. */
  monthsAhead(): number;
  stop(): Promise<void>;
}

const every_ms = 3_600_000;
const first_ms = 5_000;

export function bookUpkeep(parts: {
  ledger: Pick<Ledger, "maintain">;
  /** Told what was put off. */
  putOff: (what: string[]) => void;
  failed: (cause: unknown) => void;
  times_ms?: { first: number; every: number };
}): BookUpkeep {
  let ahead = Number.NaN;
  const rounds = repeating(round, parts.times_ms ?? { first: first_ms, every: every_ms });

  async function round(): Promise<void> {
    try {
      const { monthsAhead, putOff } = await parts.ledger.maintain();
      ahead = monthsAhead;
      if (putOff.length > 0) parts.putOff(putOff);
    } catch (cause) {
      parts.failed(cause);
    }
  }

  return { monthsAhead: () => ahead, stop: rounds.stop };
}
