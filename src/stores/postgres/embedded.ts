/**
 * The driver for the embedded database: PGlite in a data folder of its own, for one process.
 *
 *   lock, holder.json   tell which process has the folder open (lock.ts)
 *   database/           Postgres's files (embedded-files.ts)
 */
import { mkdirSync, writeSync } from "node:fs";
import type { Database } from "./database.ts";
import { DatabaseError } from "./database-error.ts";
import { type DatabaseThread, startDatabaseThread } from "./embedded-thread.ts";
import { holdFolder } from "./lock.ts";
import { databaseOver, isEngineFailure } from "./pglite.ts";
import { keepUp, type UpkeepLimits, upkeepLimits } from "./upkeep.ts";

export interface EmbeddedOptions {
  /** Whether this process is the compiled executable. */
  isCompiled?: boolean;
  /** A thread that was started before, and has not opened a folder yet. */
  thread?: DatabaseThread | null;
  /** How long a start may take. After that, the process exits with code 1 and a message. */
  start_ms?: number;
  /** Whether a first start may use the seed, an archive of an empty database; otherwise it runs initdb. */
  seed?: boolean;
  idle_transaction_ms?: number;
  upkeep?: Partial<UpkeepLimits>;
}

/**
 * Opens the database in `folder`, which is created if it does not exist. Throws DatabaseError: `in_use` if another
 * process has it open, else `unavailable`. `migrate` is the caller's next step.
 */
export async function embeddedDatabase(folder: string, options: EmbeddedOptions = {}): Promise<Database> {
  makeFolder(folder);
  const hold = holdFolder(folder);
  const start_ms = options.start_ms ?? 60_000;
  const started = exitAfter(
    start_ms,
    `the embedded database in ${folder} did not start within ${start_ms} ms, so this process ends. Try again. When it ` +
      "stays so, this machine is too slow, or the files are damaged: put a backup back, or begin with an empty folder.",
  );
  const thread = options.thread ?? startDatabaseThread(options.isCompiled ?? false);
  try {
    await thread.open(folder, options.seed ?? true);
  } catch (error) {
    await thread.close().catch(() => {});
    hold.release();
    const { message, code } = error as DatabaseError;
    if (!isEngineFailure(code)) throw error;
    throw new DatabaseError(`the embedded database in ${folder} cannot be opened: ${message}`, "unavailable");
  } finally {
    started();
  }
  const database = databaseOver(thread, {
    idle_transaction_ms: options.idle_transaction_ms ?? 30_000,
    closing: () => upkeep.stop(),
    closed: hold.release,
  });
  const upkeep = keepUp(database, { ...upkeepLimits, ...options.upkeep });
  return database;
}

/** Creates a folder that only its owner may read: it holds the hashes of all keys. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new DatabaseError(`the data folder ${folder} cannot be made: ${why}`, "unavailable", { cause: error });
  }
}

/**
 * Writes `message` to stderr and exits with code 1 after this time: if PGlite cannot start, it may loop for ever, and a
 * thread cannot be interrupted. Returns a function that cancels this.
 */
export function exitAfter(wait_ms: number, message: string): () => void {
  const timer = setTimeout(() => {
    writeSync(2, `${message}\n`);
    process.exit(1);
  }, wait_ms);
  return () => clearTimeout(timer);
}
