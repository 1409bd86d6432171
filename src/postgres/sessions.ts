/**
 * Whether a session stays one: what is set, locked or listened to on a connection must be there for its next statement. A
 * pooler that gives each transaction whatever session is free breaks that without an error, so it is recognised by what it
 * does: a session that is free goes to whoever asks next.
 */
import { type Database, DatabaseError, type Lane } from "./database.ts";

/** Under load another session may happen to be free: each try is another chance to see it. */
const tries_max = 4;
/** A pool with a single session keeps a statement waiting while a transaction has it. */
const wait_ms = 500;

/** Null, or why the database cannot be used. */
export async function whyNoSessions(db: Database): Promise<string | null> {
  if (db.kind === "pglite") return null;
  const lanes = await Promise.all([db.lane(), db.lane(), db.lane()]);
  try {
    let seen = 0;
    // Twice: a connection that was lost in the middle is another session, too.
    for (let tries = 0; tries < tries_max && seen < 2; tries++) if (await changes(lanes)) seen += 1;
    return seen < 2 ? null : pooled;
  } finally {
    await Promise.all(lanes.map((lane) => lane.close()));
  }
}

const pooled =
  "a pooler gives each transaction another session (PgBouncer with pool_mode = transaction or statement), and sluice needs " +
  "its own, for prepared statements, LISTEN and advisory locks; connect to Postgres itself, or set pool_mode = session";

/**
 * Whether the first is seen to change its session, or any two to share one. The second has a transaction open while the
 * others ask again: of a pool of two sessions, taken in turns, two connections could each get the same one every time.
 */
async function changes([first, second, third]: [Lane, Lane, Lane]): Promise<boolean> {
  try {
    const own = new Set([await sessionOf(first), await sessionOf(first)]);
    await second.query("begin");
    let taken: number;
    let again: Promise<number[]>;
    try {
      taken = await sessionOf(second);
      again = Promise.all([sessionOf(first), sessionOf(third)]);
      await Promise.race([again.catch(() => {}), Bun.sleep(wait_ms)]);
    } finally {
      await second.query("rollback");
    }
    const [its, others] = await again;
    own.add(its!);
    return own.size > 1 || own.has(taken) || own.has(others!) || taken === others;
  } catch (error) {
    if (error instanceof DatabaseError && states.has(error.code)) return true;
    throw error;
  }
}

/** Of a session that is another: a prepared statement is not there, or is already; transactions are not allowed. */
const states = new Set(["26000", "42P05", "08P01"]);

async function sessionOf(lane: Lane): Promise<number> {
  const [row] = await lane.query<{ pid: number }>("select pg_backend_pid() as pid");
  return row!.pid;
}
