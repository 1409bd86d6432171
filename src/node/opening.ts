/**
 * Opens the database of a node that is to serve. A start waits for one that may come by itself; what somebody has to mend
 * ends it at once: docs/operating.md, Starting before the database.
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
  /** How long it waits, at most; 0: not at all. */
  wait_ms: number;
  /** Resolves when the process is asked to stop. */
  stopping: Promise<unknown>;
  configuration: Configuration;
  member: Member | null;
}

interface Opened {
  database: Database;
  /** Null: it did not wait. */
  waiting: Waiting | null;
}

/** Null: it was asked to stop. Throws the failure of the last attempt. */
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
      // Loaded when it is needed: it brings the operations, and most starts do not wait.
      waiting ??= (await import("./waiting.ts")).beginWaiting(configuration, member);
      waiting.failed(why, error as Error);
      await Promise.race([Bun.sleep(Math.min(again_ms, left_ms)), stopped]);
    }
  }
}
