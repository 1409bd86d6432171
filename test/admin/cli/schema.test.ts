/**
 * Only `serve` and `migrate` change a schema; any other command that finds an older or a newer schema names it and
 * leaves it unchanged.
 */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Migration, migrate, migrations, pendingMigrations } from "../../../db/migrate.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { freshDatabase } from "../../harness/services.ts";
import { shortLived } from "../../harness/short-lived.ts";
import { program, startSluice } from "../../harness/sluice.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "sluice-schema-"));
const ends: (() => Promise<void>)[] = [async () => rmSync(folder, { recursive: true, force: true })];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

const latest = migrations.at(-1)!.name;

/** A database with all migrations but the last, and the connection with which the test changes it by hand. */
async function database(known: readonly Migration[] = migrations.slice(0, -1)) {
  const { url, drop } = await freshDatabase();
  const db = await serverDatabase(url, { connections_max: 1 });
  ends.push(drop, () => db.close());
  await migrate(db, known);
  return { url, db };
}

async function sluice(url: string, ...words: string[]) {
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: folder,
    DATABASE_URL: url,
    PORT: "0",
    SLUICE_DATA_DIR: folder,
    ...shortLived,
  };
  const run = Bun.spawn([...program, ...words], { cwd: folder, env, stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
  return { code, out, err };
}

test("an older schema is refused by name, with what to do, and stays as it is", async () => {
  const { url, db } = await database();
  for (const words of [
    ["org", "list"],
    ["key", "list", "--org", "a"],
    ["usage", "show", "a"],
    ["audit", "list"],
    ["serve", "--no-migrate"],
  ]) {
    const { code, err } = await sluice(url, ...words);
    expect([words, code, err]).toEqual([
      words,
      1,
      `sluice: the database is older than this build of sluice: it lacks the migration ${latest}; run sluice migrate, or start sluice serve\n`,
    ]);
  }
  const doctor = await sluice(url, "doctor", "--json");
  expect(JSON.parse(doctor.out)).toContainEqual({
    check: "schema",
    status: "warning",
    says: expect.stringContaining(latest),
  });
  expect(await pendingMigrations(db)).toEqual([latest]);
  expect((await sluice(url, "migrate")).out).toBe(`Applied: ${latest}.\n`);
  expect((await sluice(url, "org", "list")).code).toBe(0);
});

test("a database without any schema is older", async () => {
  const { url, drop } = await freshDatabase();
  ends.push(drop);
  const { code, err } = await sluice(url, "org", "list");
  expect([code, err]).toEqual([1, expect.stringMatching(/it lacks .*0001_baseline/)]);
});

test("a database of 0.2 is refused in one line by every command, by migrate and by a node that starts", async () => {
  const { url } = await database([{ name: "0001_directory", sql: "create table organization (slug text)" }]);
  for (const words of [["org", "list"], ["migrate"], ["serve"], ["serve", "--no-migrate"]]) {
    const { code, err } = await sluice(url, ...words);
    expect([words, code, err]).toEqual([
      words,
      1,
      "sluice: the database was made by sluice 0.2 or before it, and nothing in it can be carried over: make a new one " +
        "(createdb sluice_new, and its name in DATABASE_URL; or an empty folder as SLUICE_DATA_DIR) and run sluice migrate\n",
    ]);
  }
  const doctor = await sluice(url, "doctor", "--json");
  expect(JSON.parse(doctor.out)).toContainEqual({
    check: "schema",
    status: "problem",
    says: expect.stringContaining("createdb"),
  });
});

test("a newer schema is refused by name, by every command and by migrate", async () => {
  const { url, db } = await database(migrations);
  await db.query("insert into schema_migration (name, checksum) values ('9999_later', 'x')");
  for (const words of [["org", "list"], ["migrate"], ["serve"]]) {
    const { code, err } = await sluice(url, ...words);
    expect([words, code, err]).toEqual([
      words,
      1,
      expect.stringContaining("newer than this build of sluice: it has the migration 9999_later"),
    ]);
  }
  const doctor = await sluice(url, "doctor", "--json");
  expect(JSON.parse(doctor.out)).toContainEqual({
    check: "schema",
    status: "problem",
    says: expect.stringContaining("9999_later"),
  });
});

test("a node may start on a newer schema that is additive; commands still refuse", async () => {
  const { url, db } = await database(migrations);
  await db.query("insert into schema_migration (name, checksum, additive) values ('9999_later', 'x', true)");
  const node = await startSluice({
    store: "pglite",
    dataDir: folder,
    env: { DATABASE_URL: url, SLUICE_MIGRATE: "false" },
  });
  expect((await node.fetch("/readyz", { key: null })).status).toBe(200);
  expect((await node.cli("org", "list")).stderr).toContain("9999_later");
  await node.stop();
});
