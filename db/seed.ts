/**
 * Makes the seed archive (src/stores/postgres/seed.ts says what it is for): `bun db/seed.ts`. Does nothing if an
 * archive exists that was made by the same engine and the same migrations. Several may run at once; the last one wins.
 */
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { embeddedDatabase } from "../src/stores/postgres/embedded.ts";
import { loadEngine } from "../src/stores/postgres/engine.ts";
import { record_file, type SeedContents, type SeedRecord, seedRecord } from "../src/stores/postgres/seed.ts";
import { migrate } from "./migrate.ts";

const seed_path = join(import.meta.dir, "../.cache/seed.tar.gz");

/** Makes a database in the subfolder `database` of the given folder, and closes it. */
type Fill = (folder: string) => Promise<void>;

/** Makes the archive if needed; returns whether it was made. */
export async function makeSeed(path = seed_path, fill: Fill = migratedDatabase): Promise<boolean> {
  const record = seedRecord(await loadEngine());
  if (Bun.deepEquals(await recordIn(path), record)) return false;
  const workplace = mkdtempSync(join(tmpdir(), "sluice-seed-"));
  try {
    await fill(workplace);
    const archive = await archiveOf(join(workplace, "database"), record);
    // Renames the finished archive into place, so that nobody reads half of it.
    const partial = `${path}.${process.pid}`;
    await Bun.write(partial, archive);
    renameSync(partial, path);
    return true;
  } finally {
    rmSync(workplace, { recursive: true, force: true });
  }
}

async function recordIn(path: string): Promise<SeedRecord | null> {
  try {
    const files = await new Bun.Archive(await Bun.file(path).bytes()).files(record_file);
    const { engine, migrations }: SeedContents = JSON.parse(await files.get(record_file)!.text());
    return { engine, migrations };
  } catch {
    return null;
  }
}

/** Makes a migrated database that is as small as possible. */
async function migratedDatabase(folder: string): Promise<void> {
  const db = await embeddedDatabase(folder, { seed: false, start_ms: 300_000 });
  await migrate(db);
  for (const step of ["vacuum full", "vacuum (freeze)", "checkpoint"]) await db.exec(step);
  const [row] = await db.query<{ name: string }>("select pg_walfile_name(pg_current_wal_lsn()) as name");
  await db.close();
  // Leaves out WAL segments that Postgres has set aside for later. They are empty, and Postgres makes new ones as it
  // needs them.
  const log = join(folder, "database", "pg_wal");
  const segments = readdirSync(log).filter((name) => /^[0-9A-F]{24}$/.test(name));
  const needed = segments.sort().indexOf(row!.name) + 2;
  for (const name of segments.slice(needed)) rmSync(join(log, name));
}

async function archiveOf(folder: string, record: SeedRecord): Promise<Blob> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const pathOf = (entry: (typeof entries)[number]) => join(relative(folder, entry.parentPath), entry.name);
  const folders = entries.filter((entry) => entry.isDirectory()).map(pathOf);
  const contents: SeedContents = { ...record, folders: folders.sort() };
  const files: Record<string, Uint8Array | string> = { [record_file]: JSON.stringify(contents) };
  for (const path of entries.filter((entry) => entry.isFile()).map(pathOf))
    files[path] = readFileSync(join(folder, path));
  return new Bun.Archive(files, { compress: "gzip", level: 9 }).blob();
}

if (import.meta.main) void main();

async function main(): Promise<void> {
  const hasMade = await makeSeed();
  console.error(`${seed_path} ${hasMade ? "was made" : "is up to date"}: ${Bun.file(seed_path).size} bytes`);
}
