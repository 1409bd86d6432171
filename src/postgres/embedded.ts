/**
 * The driver for the embedded database: PGlite in a data folder of its own, for one process.
 *
 *   lock, holder.json   who has it open (lock.ts)
 *   database/           Postgres's files
 *   database.partial/   a first start in progress; renamed when it is whole, thrown away when it was cut short
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Database, DatabaseError } from "./database.ts";
import { exitAfter } from "./deadline.ts";
import { type Engine, initialise, loadEngine } from "./engine.ts";
import { holdFolder } from "./lock.ts";
import { databaseOver } from "./pglite.ts";
import { unpackSeed } from "./seed.ts";
import { keepUp, type UpkeepLimits, upkeepLimits } from "./upkeep.ts";

export interface EmbeddedOptions {
  /** When it has not started by then, the process exits with code 1 and says so. */
  start_ms?: number;
  /** Whether a first start may use the seed; else it runs initdb. */
  seed?: boolean;
  idle_transaction_ms?: number;
  upkeep?: Partial<UpkeepLimits>;
}

/**
 * Opens the database in `folder`, which is made when it is not there. Throws DatabaseError: `in_use` when a process has
 * it open, else `unavailable`. `migrate` is the caller's next step.
 */
export async function embeddedDatabase(folder: string, options: EmbeddedOptions = {}): Promise<Database> {
  makeFolder(folder);
  const hold = holdFolder(folder);
  const start_ms = options.start_ms ?? 60_000;
  const started = exitAfter(
    start_ms,
    `the embedded database in ${folder} did not start within ${start_ms} ms, so this process ends. Try again; when it ` +
      "stays so, its files are damaged: move the folder away to begin with an empty one.",
  );
  try {
    const engine = await loadEngine();
    const files = join(folder, "database");
    const partial = `${files}.partial`;
    rmSync(partial, { recursive: true, force: true });
    if (existsSync(files)) assertOurs(files, engine);
    else await firstStart(engine, { files, partial, maySeed: options.seed ?? true });
    const pglite = await engine.open(files);
    const upkeep = keepUp(pglite, { ...upkeepLimits, ...options.upkeep });
    return databaseOver(pglite, {
      idle_transaction_ms: options.idle_transaction_ms ?? 30_000,
      closing: upkeep.stop,
      closed: hold.release,
    });
  } catch (error) {
    hold.release();
    if (error instanceof DatabaseError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    const text = `the embedded database in ${folder} cannot be opened: ${why}`;
    throw new DatabaseError(text, "unavailable", { cause: error });
  } finally {
    started();
  }
}

/** Only its owner may look inside: it holds the hashes of all keys. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new DatabaseError(`the data folder ${folder} cannot be made: ${why}`, "unavailable", { cause: error });
  }
}

interface FirstStart {
  files: string;
  partial: string;
  maySeed: boolean;
}

async function firstStart(engine: Engine, { files, partial, maySeed }: FirstStart): Promise<void> {
  if (!(maySeed && (await unpackSeed(engine, partial)))) {
    rmSync(partial, { recursive: true, force: true });
    await initialise(engine, partial);
  }
  renameSync(partial, files);
}

function assertOurs(files: string, engine: Engine): void {
  let major: string;
  try {
    major = readFileSync(join(files, "PG_VERSION"), "utf8").trim();
  } catch (error) {
    const why = `${files} is no database any more: PG_VERSION is missing; put back a backup, or move the folder away`;
    throw new DatabaseError(why, "unavailable", { cause: error });
  }
  if (major !== engine.major) {
    const why = `${files} was made by Postgres ${major}, and this build brings Postgres ${engine.major}`;
    throw new DatabaseError(`${why}; run the build that made it`, "unavailable");
  }
}
