/** Work that only one node of the fleet does at a time. */
import { within } from "../../core/time/cancellation.ts";
import type { Database, Lane } from "./database.ts";
import { DatabaseError } from "./database-error.ts";

interface Terms {
  /** How long to wait for another node that does the work; 0 by default. */
  wait_ms?: number;
  /** Postgres settings of the connection on which the work runs. */
  settings?: Record<string, string>;
}

const lockNotAvailable = "55P03";
/**
 * How long a statement of such work may take. No request waits for the statement, but a node that stops does. Work that
 * can take longer is done in pieces (pieces.ts).
 */
const statement_ms = 120_000;

/**
 * Runs `work` on a connection of its own under an advisory lock of the session, which is released if the connection is
 * lost. Returns null if another node has the lock.
 */
export async function onOneNode<T>(
  db: Database,
  lock: string,
  work: (lane: Lane) => Promise<T>,
  { wait_ms = 0, settings = {} }: Terms = {},
): Promise<T | null> {
  if (db.kind === "pglite") return inOneCall(db, lock, work, wait_ms);
  const waiting: Record<string, string> = wait_ms > 0 ? { lock_timeout: String(wait_ms) } : {};
  const lane = await db.lane({ ...settings, ...waiting }, { statement_ms });
  try {
    if (!(await locked(lane, lock, wait_ms > 0))) return null;
    try {
      return await work(lane);
    } finally {
      await lane.query("select pg_advisory_unlock(hashtextextended($1, 0))", [lock]);
    }
  } finally {
    await lane.close();
  }
}

/**
 * The work under way on each embedded database, by the name of the lock. An advisory lock would exclude nothing there:
 * the one process has one session, and Postgres grants a lock again to the session that already holds it.
 */
const underWay = new WeakMap<Database, Map<string, Promise<unknown>>>();

async function inOneCall<T>(
  db: Database,
  lock: string,
  work: (lane: Lane) => Promise<T>,
  wait_ms: number,
): Promise<T | null> {
  const held = underWay.getOrInsertComputed(db, () => new Map());
  const end_ms = performance.now() + wait_ms;
  for (let other = held.get(lock); other; other = held.get(lock)) {
    const left_ms = end_ms - performance.now();
    if (left_ms <= 0) return null;
    await within(other, left_ms, lock).catch(() => {});
  }
  const own = db
    .lane()
    .then(work)
    .finally(() => held.delete(lock));
  held.set(lock, own);
  return own;
}

async function locked(lane: Lane, lock: string, waits: boolean): Promise<boolean> {
  if (!waits) {
    const tried = "select pg_try_advisory_lock(hashtextextended($1, 0)) as locked";
    return (await lane.query<{ locked: boolean }>(tried, [lock]))[0]!.locked;
  }
  try {
    await lane.query("select pg_advisory_lock(hashtextextended($1, 0))", [lock]);
    return true;
  } catch (error) {
    if (error instanceof DatabaseError && error.code === lockNotAvailable) return false;
    throw error;
  }
}
