/**
 * The seed: an archive of an empty, migrated database. Unpacking it takes a tenth of a second where initdb takes seconds.
 * `bun db/seed.ts` makes it at .cache/seed.tar.gz; it is not committed, and everything works without it.
 *
 * For the author of a build: run `bun db/seed.ts` before `bun build`, nothing more. The import below stands in a `try`, so
 * Bun embeds the file where it is there at build time, and lets the build pass where it is not; from source the same line
 * finds the file, or fails and is caught.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checksumOf, migrations } from "../../../db/migrate.ts";
import type { Engine } from "./engine.ts";

/** The versions that a seed was made with. */
export interface SeedRecord {
  engine: string;
  migrations: { name: string; checksum: string }[];
}
/** The contents of `seed.json` in the archive. It lists empty folders, since the archive has only files. */
export interface SeedContents extends SeedRecord {
  folders: string[];
}
export const record_file = "seed.json";

/** The record that a seed made now would have. */
export function seedRecord(engine: Engine): SeedRecord {
  return {
    engine: engine.identity,
    migrations: migrations.map((migration) => ({ name: migration.name, checksum: checksumOf(migration) })),
  };
}

/**
 * Unpacks the seed into an empty folder. Returns false, and leaves the folder in any state, if there is none that fits
 * this build.
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

/** Made by the same engine, with some or all of our migrations: the migrator adds the missing ones. */
export function seedFits(seed: SeedRecord, ours: SeedRecord): boolean {
  return (
    seed.engine === ours.engine &&
    seed.migrations.every(
      ({ name, checksum }, at) => ours.migrations[at]?.name === name && ours.migrations[at].checksum === checksum,
    )
  );
}
