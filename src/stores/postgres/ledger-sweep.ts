/**
 * Sweeps for lapsed leases with `usage_recover` (migration 0004). Each continues from what the one before has seen
 * (docs/design/metering.md, Rule 6: Any node recovers).
 */
import type { Ledger } from "../../core/store/ledger.ts";
import type { Database } from "./database.ts";

/**
 * The interval at which all holds are looked at, those of nodes with a slow clock too. Between, only those that may
 * have lapsed.
 */
const wholeSweep_ms = 10 * 60_000;

/** Settles holds whose lease has lapsed, and reads little of those that do not concern it. */
export function recoverer(db: Pick<Database, "query">, chargeHolds: boolean): Ledger["recover"] {
  // The results of the last sweep, and the instant of the last whole one by the store's clock.
  let seen: string[] = [];
  let since: string | null = null;
  let whole_ms: number | null = null;
  return async (limit, range) => {
    const [row] = await db.query<{ settled: number; seen: string[]; since: string; clock: Date }>(
      "select * from usage_recover($1, $2, $3, $4, $5, $6)",
      [limit, chargeHolds, seen, since, range?.earliest ?? null, range?.latest ?? null],
    );
    const { settled, clock } = row!;
    if (since === null) whole_ms = clock.getTime();
    seen = row!.seen;
    since = Math.abs(clock.getTime() - whole_ms!) >= wholeSweep_ms ? null : row!.since;
    return { settled, at: clock };
  };
}
