/**
 * Opens the database of a node that is to serve. A start waits for a database that may come up by itself; a problem
 * that a person has to correct ends the start immediately: docs/operating.md, Starting before the database.
 */
import type { Configuration } from "../config/configuration.ts";
import type { Member } from "../features/workers/member.ts";
import type { Database } from "../stores/postgres/database.ts";
import { whyAway } from "../stores/postgres/database-error.ts";
import type { Waiting } from "./waiting.ts";

/** The pause between two attempts. */
const again_ms = 1_000;

interface Opening {
  open(): Promise<Database>;
  /** The longest wait in milliseconds; 0: none. */
  wait_ms: number;
  stopping: Promise<unknown>;
  configuration: Configuration;
  member: Member | null;
}

interface Opened {
  database: Database;
  /** The stand-in that listened while the database was away (waiting.ts); null: there was no wait. */
  waiting: Waiting | null;
}

/** The database; null: the process was asked to stop. Throws the failure of the last attempt. */
export async function opened({ open, wait_ms, stopping, configuration, member }: Opening): Promise<Opened | null> {
  const end_ms = performance.now() + wait_ms;
  const stopped = stopping.then(() => null);
  let waiting: Waiting | null = null;
  while (true) {
    try {
      const database = await Promise.race([open(), stopped]);
      waiting?.ended(database !== null);
      return database && { database, waiting };
    } catch (error) {
      const why = whyAway(error);
      const left_ms = end_ms - performance.now();
      if (why === null || left_ms <= 0) throw error;
      // Loaded when needed: it imports the operations, and most starts do not wait.
      waiting ??= (await import("./waiting.ts")).beginWaiting(configuration, member);
      waiting.failed(why, error as Error);
      await Promise.race([Bun.sleep(Math.min(again_ms, left_ms)), stopped]);
    }
  }
}
