/**
 * Only `serve` and `migrate` change the database's schema. Any other command that finds an older or a newer schema
 * reports it and leaves it unchanged.
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

/** Creates a database with all migrations but the last, and a connection with which the test changes it directly. */
async function database(known: readonly Migration[] = migrations.slice(0, -1)) {
  const { url, drop } = await freshDatabase();
  const db = await serverDatabase(url, { connections_max: 1 });
  ends.push(drop, () => db.close());
  await migrate(db, known);
  return { url, db };
}

async function sluice(url: string, typed: string) {
  const env = {
    ...{ PATH: process.env.PATH ?? "", HOME: folder, DATABASE_URL: url, PORT: "0", SLUICE_DATA_DIR: folder },
    ...shortLived,
  };
  const run = Bun.spawn([...program, ...typed.split(" ")], { cwd: folder, env, stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
  return { code, out, err };
}

/**
 * Expects that each of these commands fails with one line, and that `sluice doctor` has a finding that explains why.
 */
async function expectRefused(url: string, commands: string[], says: string, [status, finding]: [string, string]) {
  const doctor = sluice(url, "doctor --json");
  const refused = await Promise.all(commands.map(async (typed) => ({ typed, ...(await sluice(url, typed)) })));
  for (const { typed, code, err } of refused)
    expect([typed, code, err]).toEqual([typed, 1, expect.stringMatching(/^sluice: [^\n]+\n$/)]);
  for (const { err } of refused) expect(err).toContain(says);
  const found = { check: "schema", status, says: expect.stringContaining(finding) };
  expect(JSON.parse((await doctor).out)).toContainEqual(found);
}

test("an older schema is refused by name, with what to do, and stays as it is", async () => {
  const { url, db } = await database();
  const says = `the database is older than this build of sluice: it lacks the migration ${latest}; run sluice migrate, or start sluice serve\n`;
  await expectRefused(url, ["org list", "audit list", "serve --no-migrate"], says, ["warning", latest]);
  expect(await pendingMigrations(db)).toEqual([latest]);
  expect((await sluice(url, "migrate")).out).toBe(`Applied: ${latest}.\n`);
  expect((await sluice(url, "org list")).code).toBe(0);
});

test("a database without any schema is older", async () => {
  const { url, drop } = await freshDatabase();
  ends.push(drop);
  const { code, err } = await sluice(url, "org list");
  expect([code, err]).toEqual([1, expect.stringMatching(/it lacks .*0001_baseline/)]);
});

test("a database of 0.2 is refused in one line by every command, by migrate and by a node that starts", async () => {
  const { url } = await database([{ name: "0001_directory", sql: "create table organization (slug text)" }]);
  const says =
    "the database was made by sluice 0.2 or before it, and nothing in it can be carried over: make a new one " +
    "(createdb sluice_new, and its name in DATABASE_URL; or an empty folder as SLUICE_DATA_DIR) and run sluice migrate\n";
  const commands = ["org list", "migrate", "serve", "serve --no-migrate"];
  await expectRefused(url, commands, says, ["problem", "createdb"]);
});

test("a newer schema is refused by name, by every command and by migrate", async () => {
  const { url, db } = await database(migrations);
  await db.query("insert into schema_migration (name, checksum) values ('9999_later', 'x')");
  const says = "newer than this build of sluice: it has the migration 9999_later";
  await expectRefused(url, ["org list", "migrate", "serve"], says, ["problem", "9999_later"]);
});

test("a node may start on a newer schema that is additive, and migrate says so; commands still refuse", async () => {
  const { url, db } = await database(migrations);
  await db.query("insert into schema_migration (name, checksum, additive) values ('9999_later', 'x', true)");
  const node = await startSluice({
    store: "pglite",
    dataDir: folder,
    env: { DATABASE_URL: url, SLUICE_MIGRATE: "false" },
  });
  expect((await node.fetch("/readyz", { key: null })).status).toBe(200);
  expect((await node.cli("org", "list")).stderr).toContain("9999_later");
  const newer = "The database is newer, and this version can use it: it has 9999_later.\n";
  expect(await node.cli("migrate")).toEqual({ code: 0, stdout: newer, stderr: "" });
  expect(await node.cli("migrate", "--json")).toMatchObject({
    code: 0,
    stdout: '{"applied":[],"newer":["9999_later"]}\n',
  });
  await node.stop();
});

test("a running server tells the schema of its embedded database", async () => {
  const sluice = await startSluice({ store: "pglite" });
  const { stdout } = await sluice.cli("doctor", "--json");
  expect(JSON.parse(stdout)).toContainEqual({ check: "schema", status: "ok", says: "as this version makes it" });
  expect((await sluice.cli("migrate")).stdout).toBe("The database is up to date.\n");
  expect(await sluice.stop()).toBe(0);
});
