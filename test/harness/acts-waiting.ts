import { bare } from "../../src/core/store/ids.ts";
import type { Database } from "../../src/stores/postgres/database.ts";
import { until } from "./until.ts";

/** Waits until exactly this number of transactions wait for locks in the database. */
export const actsWaiting = (db: Database, acts: number) =>
  until(async () => {
    const rows = await db.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return rows.length === acts;
  });

/**
 * Starts the acts one by one while the organization's row is locked, each once all before it wait for the lock. Then
 * releases the lock, and returns all outcomes.
 */
export async function whileLocked(db: Database, organizationId: string, acts: (() => Promise<unknown>)[]) {
  const begun: Promise<unknown>[] = [];
  await db.transaction(async (holder) => {
    await holder.query("select from organization where id = $1 for update", [bare(organizationId, "org_")]);
    for (const act of acts) {
      const one = act();
      one.catch(() => {});
      begun.push(one);
      await actsWaiting(db, begun.length);
    }
  });
  return Promise.allSettled(begun);
}
