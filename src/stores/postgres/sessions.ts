/**
 * Checks that a connection keeps its session: settings, locks and listeners must still be there for its next statement.
 * A pooler that gives each transaction any free session breaks that without an error. Such a pooler is recognised by
 * its behaviour: a free session goes to whichever connection asks next.
 */
import type { Database, Lane } from "./database.ts";
import { DatabaseError } from "./database-error.ts";

/**
 * The most tries. Under load, a connection may get the same session again by chance, and each try is another chance to
 * see a different one.
 */
const tries_max = 4;
/**
 * How long a statement may wait. Behind a pooler with a single session, it waits while another connection has a
 * transaction open.
 */
const wait_ms = 500;

/** The reason why the database cannot be used; null if it can. */
export async function whyNoSessions(db: Database): Promise<string | null> {
  if (db.kind === "pglite") return null;
  if (await refusesTransactions(db)) return pooledByStatement;
  const lanes = await Promise.all([db.lane(), db.lane(), db.lane()]);
  try {
    let seen = 0;
    // The change of sessions must be seen twice, because a lost connection also leads to another session.
    for (let tries = 0; tries < tries_max && seen < 2; tries++) if (await changes(lanes)) seen += 1;
    return seen < 2 ? null : pooled;
  } finally {
    await Promise.all(lanes.map((lane) => lane.close()));
  }
}

const instead = "connect to Postgres itself, or set pool_mode = session";
const pooled =
  "a pooler gives each transaction another session (PgBouncer with pool_mode = transaction), and sluice needs its own, for " +
  `prepared statements, LISTEN and advisory locks; ${instead}`;
const pooledByStatement =
  "a pooler gives each statement another session and refuses transactions (PgBouncer with pool_mode = statement), and " +
  `sluice needs both; ${instead}`;

/**
 * Whether the pooler refuses transactions. Such a pooler answers a single statement, but ends the connection at each
 * `begin`. So its sessions cannot be examined, and the driver does not report its message.
 */
async function refusesTransactions(db: Database): Promise<boolean> {
  for (let tries = 0; tries < 2; tries++) {
    const lane = await db.lane();
    try {
      await sessionOf(lane);
      if (!(await isLostBy(() => lane.query("begin")))) return false;
    } catch (error) {
      if (isAnother(error)) return false;
      throw error;
    } finally {
      await lane.close();
    }
  }
  return true;
}

async function isLostBy(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return false;
  } catch (error) {
    if (error instanceof DatabaseError && ["unavailable", "08P01"].includes(error.code)) return true;
    throw error;
  }
}

/**
 * Whether the first connection changes its session, or two of the three connections share a session. The second
 * connection has a transaction open while the first and the third ask for their sessions. Without that, a pool of two
 * sessions that takes turns could give two connections the same sessions every time.
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
    if (isAnother(error)) return true;
    throw error;
  }
}

/** Whether an error shows that the session has changed: a prepared statement is missing, or exists already. */
const isAnother = (error: unknown): boolean =>
  error instanceof DatabaseError && ["26000", "42P05"].includes(error.code);

async function sessionOf(lane: Lane): Promise<number> {
  const [row] = await lane.query<{ pid: number }>("select pg_backend_pid() as pid");
  return row!.pid;
}
