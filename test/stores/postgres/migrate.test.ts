// The migrator applies each migration once, in order, and completely or not at all, even if several nodes start it or
// it is started again.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  assertCurrent,
  type Migration,
  MigrationError,
  migrate,
  migrations,
  pendingMigrations,
  prepareToServe,
  schemaOf,
  unfitting,
} from "../../../db/migrate.ts";
import { within } from "../../../src/core/time/cancellation.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { freshDatabase } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";
import { databaseForTests, emptied, kinds, type Open } from "./databases.ts";

// Starting a database takes half a second, and many times that on a busy machine.
setDefaultTimeout(60_000);

const first: Migration = { name: "0001_first", sql: "create table first (n int); create table other (n int);" };
const second: Migration = { name: "0002_second", sql: "insert into first values (1); create table second (n int);" };

for (const { kind, open } of kinds) describe(kind, () => contract(open));

function contract(open: Open): void {
  const own = databaseForTests(open, { migrated: false });
  const fresh = async () => {
    await emptied(own);
    return own;
  };

  test("an empty database gets all of this build's migrations, and a second start finds nothing to do", async () => {
    const db = await fresh();
    const names = migrations.map(({ name }) => name);
    expect(await pendingMigrations(db)).toEqual(names);
    expect(await migrate(db)).toEqual(names);
    expect(await pendingMigrations(db)).toEqual([]);
    expect(await migrate(db)).toEqual([]);
  });

  test("an older database is brought up to date by what is missing alone", async () => {
    const db = await fresh();
    expect(await migrate(db, [first])).toEqual(["0001_first"]);
    expect(await migrate(db, [first, second])).toEqual(["0002_second"]);
    expect(await db.query("select n from first")).toEqual([{ n: 1 }]);
  });

  test("a database that is newer than the build is refused, and left as it is", async () => {
    const db = await fresh();
    await migrate(db, [first, second]);
    await expect(migrate(db, [first])).rejects.toThrow("the database is newer than this build of sluice");
    await expect(pendingMigrations(db, [first])).rejects.toBeInstanceOf(MigrationError);
    expect(await pendingMigrations(db, [first, second])).toEqual([]);
  });

  test("a newer database that the build can use has nothing to migrate: a roll-back runs the old version's migrate", async () => {
    const db = await fresh();
    const additive: Migration = { ...second, additive: true };
    await migrate(db, [first, additive]);
    expect(await migrate(db, [first])).toEqual([]);
    expect(await schemaOf(db, [first])).toEqual({ is: "newer", beyond: ["0002_second"], additive: true });
    const third: Migration = { name: "0003_third", sql: "create table third (n int);" };
    await migrate(db, [first, additive, third]);
    await expect(migrate(db, [first])).rejects.toThrow("the database is newer than this build of sluice");
  });

  // Each row of the table in docs/operating.md, Starting, stopping, upgrading, is a row of this test.
  test("which versions may run side by side", async () => {
    const additive: Migration = { ...second, additive: true };
    const another = { ...first, sql: `${first.sql} ` };
    const rows: [
      what: string,
      has: Migration[],
      runs: boolean,
      startsUnmigrated: boolean,
      commands: boolean,
      starts: boolean,
    ][] = [
      ["the schema of this version", [first], true, true, true, true],
      ["an older one", [], false, false, false, true],
      ["a newer one, additive", [first, additive], true, true, false, true],
      ["a newer one", [first, second], false, false, false, false],
      ["another", [another], false, false, false, false],
      ["one of 0.2 or before it", [{ ...first, name: "0001_directory" }, second], false, false, false, false],
    ];
    const passes = (work: Promise<unknown>) =>
      work.then(
        () => true,
        (error) => !(error instanceof MigrationError),
      );
    for (const [what, has, ...expected] of rows) {
      const db = await fresh();
      await migrate(db, has);
      expect([
        what,
        unfitting(await schemaOf(db, [first])) === null,
        await passes(prepareToServe(db, false, [first])),
        await passes(assertCurrent(db, [first])),
        // This check is the last one, because it may change the schema.
        await passes(prepareToServe(db, true, [first])),
      ]).toEqual([what, ...expected]);
    }
  });

  test("a database of an unreleased build is refused, with what to do instead", async () => {
    const db = await fresh();
    await migrate(db, [{ ...first, sql: `${first.sql} ` }, second]);
    const toDo = "0001_first of this database is not one of this build: an unreleased build made it, and it cannot be";
    await expect(migrate(db, [first, second])).rejects.toThrow(toDo);
    await expect(assertCurrent(db, [first, second])).rejects.toThrow("start with an empty database");
    // The later migrations of that database have other names. That does not make the database newer than this build.
    const renamed = { ...second, name: "0002_another" };
    await expect(migrate(db, [{ ...first, sql: `${first.sql} ` }, renamed])).rejects.toThrow("0002_second of this");
  });

  test("a database of 0.2 or before it is refused in one line, which says how to make a new one, and left as it is", async () => {
    const db = await fresh();
    // The table of applied migrations in the format of versions 0.1 and 0.2.
    await db.exec(`create table organization (slug text); insert into organization values ('acme');
      create table schema_migration (name text primary key, checksum text not null, applied_at timestamptz);
      insert into schema_migration values ('0001_directory', 'a'), ('0002_ledger_tables', 'b')`);
    const attempts = [migrate, pendingMigrations, assertCurrent, (one: typeof db) => prepareToServe(one, true)];
    for (const attempt of attempts)
      await expect(attempt(db)).rejects.toThrow(
        /^[^\n]*0\.2 or before[^\n]*createdb[^\n]*SLUICE_DATA_DIR[^\n]*sluice migrate$/,
      );
    expect(await db.query("select slug from organization")).toEqual([{ slug: "acme" }]);
    expect(await db.query("select count(*)::int as count from schema_migration")).toEqual([{ count: 2 }]);
  });

  test("a migration that was edited after it was applied is refused, but not for its line ends", async () => {
    const db = await fresh();
    const lines = { name: "0001_lines", sql: "create table a (n int);\ncreate table b (n int);\n" };
    await migrate(db, [lines]);
    expect(await pendingMigrations(db, [{ ...lines, sql: lines.sql.replaceAll("\n", "\r\n") }])).toEqual([]);
    await expect(migrate(db, [{ ...lines, sql: `${lines.sql} ` }])).rejects.toThrow(
      "0001_lines of this database is not one of this build",
    );
  });

  test("a migration that fails leaves nothing of itself, and can be tried again when it is mended", async () => {
    const db = await fresh();
    const broken = { name: "0002_second", sql: "create table second (n int); select 1 / 0;" };
    await expect(migrate(db, [first, broken])).rejects.toMatchObject({ code: "22012" });
    expect(await pendingMigrations(db, [first, second])).toEqual(["0002_second"]);
    expect(await migrate(db, [first, second])).toEqual(["0002_second"]);
  });
}

test("nodes learn of the schema while a long migration runs, and stay ready", async () => {
  const { url, drop } = await freshDatabase();
  const [migrating, serving, holding] = await Promise.all([1, 2, 3].map(() => serverDatabase(url)));
  const release = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  let migrates: Promise<string[]> = Promise.resolve([]);
  try {
    await migrate(migrating!, [first]);
    const holds = holding!.transaction(async (tx) => {
      await tx.query("select pg_advisory_xact_lock(7)");
      held.resolve();
      await release.promise;
    });
    await held.promise;
    const long = { ...second, sql: `${second.sql} select pg_advisory_xact_lock(7);` };
    migrates = migrate(migrating!, [first, long]);
    await until(async () => (await waiting(serving!)) === 1, 10_000, "the migration to be under way");
    expect(await within(schemaOf(serving!, [first]), 1500, "the schema")).toEqual({ is: "current" });
    release.resolve();
    await holds;
    expect(await migrates).toEqual([second.name]);
  } finally {
    release.resolve();
    await migrates.catch(() => {});
    await Promise.all([migrating, serving, holding].map((db) => db!.close()));
    await drop();
  }
});

const waiting = async (db: { query<Row>(text: string): Promise<Row[]> }): Promise<number> =>
  (await db.query("select from pg_locks where locktype = 'advisory' and not granted")).length;

test("nodes that start together apply each migration once", async () => {
  const { url, drop } = await freshDatabase();
  const nodes = await Promise.all(Array.from({ length: 4 }, () => serverDatabase(url, { connections_max: 2 })));
  const applied = await Promise.all(nodes.map((db) => migrate(db)));
  expect(applied.flat().sort()).toEqual(migrations.map(({ name }) => name));
  await Promise.all(nodes.map((db) => db.close()));
  await drop();
}, 30_000);

test("migrations are numbered without gaps, in the order of the list", () => {
  for (const [at, { name }] of migrations.entries()) {
    expect(name).toMatch(new RegExp(`^${String(at + 1).padStart(4, "0")}_[a-z0-9_]+$`));
  }
});
