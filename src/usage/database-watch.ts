/** Reads the state of the database once a minute, for the metrics. */
import type { DatabaseSigns } from "../store/signs.ts";
import { repeating } from "../time/repeating.ts";

export interface DatabaseWatch {
  /** NaN before the first answer, and while the database is away. */
  signs(): DatabaseSigns;
  stop(): Promise<void>;
}

const every_ms = 60_000;
const unknown: DatabaseSigns = {
  oldestSnapshot_transactions: Number.NaN,
  deadRows: Number.NaN,
  unfrozen_transactions: Number.NaN,
};

export function databaseWatch(
  read: () => Promise<DatabaseSigns>,
  times_ms = { first: 1_000, every: every_ms },
): DatabaseWatch {
  let last = unknown;
  const rounds = repeating(async () => {
    last = await read().catch(() => unknown);
  }, times_ms);
  return { signs: () => last, stop: rounds.stop };
}
