/** Work that one node of the fleet does at a time. */
import type { Database, Lane } from "./database.ts";

/**
 * Does `work` on a connection of its own under a session's advisory lock, which a connection that is lost gives back. Null:
 * another node is at it.
 */
export async function onOneNode<T>(
  db: Database,
  lock: string,
  work: (lane: Lane) => Promise<T>,
  settings: Record<string, string> = {},
): Promise<T | null> {
  const lane = await db.lane(db.kind === "postgres" ? settings : {});
  try {
    const [own] = await lane.query<{ locked: boolean }>(
      "select pg_try_advisory_lock(hashtextextended($1, 0)) as locked",
      [lock],
    );
    if (!own!.locked) return null;
    try {
      return await work(lane);
    } finally {
      await lane.query("select pg_advisory_unlock(hashtextextended($1, 0))", [lock]);
    }
  } finally {
    await lane.close();
  }
}
