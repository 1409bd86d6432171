// Creates a migrated database for one test in a twentieth of a second: it copies a template database. The first test
// that needs the template creates it on the server, and it stays there for the other test files.

import { createHash, randomUUID } from "node:crypto";
import postgres from "postgres";
import { checksumOf, migrate, migrations } from "../../db/migrate.ts";
import { serverDatabase } from "../../src/stores/postgres/server.ts";
import { postgresUrl } from "./services.ts";

/** The number of the advisory lock under which the template is created: an arbitrary one that no other code uses. */
const makingTemplate = 7_203_114;

/** Creates a new database with every migration. `drop` also ends the connections that are still open to it. */
export async function migratedDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const server = await postgresUrl();
  const name = `sluice_test_${randomUUID().replaceAll("-", "")}`;
  await onServer(server, async (sql) => {
    const template = await templateOn(sql, server);
    // The strategy `wal_log` copies page by page through the write-ahead log. The strategy `file_copy` needs two
    // checkpoints, and took twice as long.
    await sql.unsafe(`create database "${name}" template "${template}" strategy wal_log`);
  });
  const url = named(server, name);
  // Nodes store data about a ledger in Redis under the ledger's ID, so each copy needs an ID of its own.
  await onServer(url, (sql) => sql`update usage_ledger set ledger_id = gen_random_uuid()`);
  return {
    url,
    async drop() {
      await onServer(server, (sql) => sql.unsafe(`drop database if exists "${name}" with (force)`));
    },
  };
}

/**
 * Returns the name of the template, and creates it if it is missing. The name contains the checksum of the migrations,
 * so a template of other migrations is never used.
 */
async function templateOn(sql: postgres.Sql, server: string): Promise<string> {
  const sums = migrations.map((migration) => `${migration.name} ${checksumOf(migration)}`).join("\n");
  const template = `sluice_template_${createHash("sha256").update(sums).digest("hex").slice(0, 16)}`;
  const isThere = async () => (await sql`select from pg_database where datname = ${template}`).length > 0;
  if (await isThere()) return template;
  await sql`select pg_advisory_lock(${makingTemplate})`;
  if (await isThere()) return template;
  // The template has another name until it is complete, because a database cannot be copied while anyone is connected
  // to it.
  const unfinished = `${template}_unfinished`;
  await sql.unsafe(`drop database if exists "${unfinished}" with (force)`);
  await sql.unsafe(`create database "${unfinished}"`);
  const database = await serverDatabase(named(server, unfinished), { connections_max: 1 });
  await migrate(database).finally(() => database.close());
  await sql.unsafe(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${unfinished}'`);
  await sql.unsafe(`alter database "${unfinished}" rename to "${template}"`);
  return template;
}

/** Does the work on one connection. Its close also releases the advisory locks of the work. */
async function onServer<T>(server: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(server, { max: 1, onnotice: () => {}, connect_timeout: 10 });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function named(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}
