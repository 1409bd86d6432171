/**
 * The seed: an archive of an empty, migrated database. Unpacking it takes a tenth of a second, where initdb takes
 * seconds. `bun db/seed.ts` makes it at .cache/seed.tar.gz; it is not committed, and everything works without it.
 *
 * For a build: run `bun db/seed.ts` before `bun build`. The import below is in a `try`, so Bun embeds the file if it
 * exists at build time, and the build succeeds if it does not; from source the same line finds the file, or fails and
 * is caught.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checksumOf, migrations } from "../../../db/migrate.ts";
import type { Engine } from "./engine.ts";

/** The versions with which a seed was made. */
export interface SeedRecord {
  engine: string;
  migrations: { name: string; checksum: string }[];
}
/** The contents of `seed.json` in the archive. It lists empty folders, since the archive has only files. */
export interface SeedContents extends SeedRecord {
  folders: string[];
}
export const record_file = "seed.json";

/** The database engine and the migrations from which this build would make the seed archive. */
export function seedRecord(engine: Engine): SeedRecord {
  return {
    engine: engine.identity,
    migrations: migrations.map((migration) => ({ name: migration.name, checksum: checksumOf(migration) })),
  };
}

/**
 * Unpacks the seed into an empty folder. False if there is no seed that fits this build; the folder is then in an
 * undefined state.
 */
export async function unpackSeed(engine: Engine, folder: string): Promise<boolean> {
  const archive = await seedArchive();
  if (archive === null) return false;
  try {
    await new Bun.Archive(await archive.bytes()).extract(folder);
    const contents: SeedContents = JSON.parse(readFileSync(join(folder, record_file), "utf8"));
    for (const path of contents.folders) mkdirSync(join(folder, path), { recursive: true });
    return seedFits(contents, seedRecord(engine));
  } catch {
    return false;
  }
}

async function seedArchive(): Promise<Bun.BunFile | null> {
  try {
    const file = await import("../../../.cache/seed.tar.gz", { with: { type: "file" } });
    return Bun.file(file.default);
  } catch {
    return null;
  }
}

/**
 * Whether a seed fits: made by the same engine, with some or all of our migrations. The migrator adds the missing ones.
 */
export function seedFits(seed: SeedRecord, ours: SeedRecord): boolean {
  return (
    seed.engine === ours.engine &&
    seed.migrations.every(
      ({ name, checksum }, at) => ours.migrations[at]?.name === name && ours.migrations[at].checksum === checksum,
    )
  );
}
