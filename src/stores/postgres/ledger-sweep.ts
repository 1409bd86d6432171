/**
 * Sweeps for lapsed leases with `usage_recover`. Each sweep continues from what the last one has seen
 * (docs/design/metering.md, Rule 6: Any node recovers).
 */
import type { Ledger } from "../../core/store/ledger.ts";
import type { Querying } from "./database.ts";

/**
 * How often all holds are read, including those of nodes with a slow clock. Other sweeps read only holds that may have
 * lapsed.
 */
const wholeSweep_ms = 10 * 60_000;

/** Makes the function that settles holds whose lease has lapsed. It reads few of the other holds. */
export function recoverer(db: Querying, chargeHolds: boolean): Ledger["recover"] {
  // The ids of the requests that the last sweep saw running; and when the last whole sweep was, by the store's clock.
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
