/**
 * For the metrics, reads once a minute the state of the database, and how many organizations, teams, people and keys
 * are near a limit.
 */
import { repeating } from "../../core/time/clock.ts";
import type { DatabaseSigns } from "./store/signs.ts";

const minutely = { first: 1_000, every: 60_000 };
const unknownSigns: DatabaseSigns = {
  oldestSnapshot_transactions: Number.NaN,
  deadRows: Number.NaN,
  unfrozen_transactions: Number.NaN,
};

export function databaseWatch(read: () => Promise<DatabaseSigns>, times_ms = minutely) {
  return watch(read, unknownSigns, times_ms);
}

export function nearLimitsWatch<Item>(read: () => Promise<Item[]>, times_ms = minutely) {
  return watch<readonly Item[]>(read, [], times_ms);
}

function watch<State>(read: () => Promise<State>, unknown: State, times_ms: typeof minutely) {
  let last = unknown;
  const rounds = repeating(async () => {
    last = await read().catch(() => unknown);
  }, times_ms);
  return {
    /** The last state that was read; `unknown` before the first answer, and while the database is away. */
    state: () => last,
    stop: rounds.stop,
  };
}
