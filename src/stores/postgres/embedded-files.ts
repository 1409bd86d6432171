/**
 * The files of the embedded database, below its data folder:
 *
 *   database/           Postgres's files
 *   database.partial/   a first start in progress; renamed when complete, deleted if it was cut short
 */
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { PGlite } from "@electric-sql/pglite";
import { DatabaseError } from "./database-error.ts";
import { type Engine, initialise } from "./engine.ts";

/**
 * Opens the database in `folder`. If there is none, creates one: from the seed (an archive of an empty database) if
 * `maySeed` and this build has a seed, else with initdb.
 */
export async function openFiles(engine: Engine, folder: string, maySeed: boolean): Promise<PGlite> {
  const files = join(folder, "database");
  const partial = `${files}.partial`;
  rmSync(partial, { recursive: true, force: true });
  if (existsSync(files)) assertOurs(files, engine);
  else {
    // The seed module is imported only for a new database, since it loads all migrations.
    const isSeeded = maySeed && (await import("./seed.ts").then(({ unpackSeed }) => unpackSeed(engine, partial)));
    if (!isSeeded) {
      rmSync(partial, { recursive: true, force: true });
      await initialise(engine, partial);
    }
    renameSync(partial, files);
  }
  return engine.open(files);
}

function assertOurs(files: string, engine: Engine): void {
  let major: string;
  try {
    major = readFileSync(join(files, "PG_VERSION"), "utf8").trim();
  } catch {
    const why = `${files} is no database any more: PG_VERSION is missing; put back a backup, or move the folder away`;
    throw new DatabaseError(why, "unavailable");
  }
  if (major !== engine.major) {
    const why = `${files} was made by Postgres ${major}, and this build brings Postgres ${engine.major}`;
    throw new DatabaseError(`${why}; run the build that made it`, "unavailable");
  }
}
