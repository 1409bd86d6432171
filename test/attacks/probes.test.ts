/**
 * Probes respond promptly and truthfully: a prober with a timeout of one second does not eject a node because a
 * dependency hangs, and a node that can admit no request reports that.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import postgres from "postgres";
import { faultyPostgres, faultyRedis, type Store } from "../faults/stores.ts";
import { busyness } from "../harness/busyness.ts";
import { account } from "../harness/daemon.ts";
import { lineOf } from "../harness/log-lines.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";

setDefaultTimeout(120_000);

let database: Store;
let redis: Store;
let node: Sluice;
let url: string;

beforeAll(async () => {
  [database, redis] = await Promise.all([faultyPostgres(), faultyRedis()]);
  url = `postgres://postgres@127.0.0.1:${database.port}/postgres`;
  const env = { DATABASE_URL: url, REDIS_URL: `redis://127.0.0.1:${redis.port}` };
  node = await startSluice({ store: "pglite", env });
});
afterAll(async () => {
  redis.thaw();
  database.thaw();
  await node.stop();
  await Promise.all([database.stop(), redis.stop()]);
});

/** The time in milliseconds that many probers wait for a response. */
const prober_ms = 1000;

interface Readyz {
  status: number;
  ms: number;
  checks: Record<string, string>;
}

async function readyz(query = "?verbose"): Promise<Readyz> {
  const started = performance.now();
  const response = await node.fetch(`/readyz${query}`, { key: null });
  const { checks } = (await response.json()) as { checks: Record<string, string> };
  return { status: response.status, ms: performance.now() - started, checks };
}

/**
 * Waits until the check's text matches `says`, and expects that it then keeps matching. Returns the time of the slowest
 * response.
 */
async function whileSaying(check: string, says: RegExp): Promise<number> {
  let slowest_ms = 0;
  let last: Readyz | undefined;
  const seen = async () => {
    last = await readyz();
    slowest_ms = Math.max(slowest_ms, last.ms);
    return says.test(last.checks[check] ?? "");
  };
  await until(seen, 30_000, `${check} to say ${says}`);
  for (let probe = 0; probe < 10; probe++) expect(await seen()).toBe(true);
  return slowest_ms;
}

const ready = () => until(async () => (await readyz()).status === 200, 60_000, "the node to be ready");
/** Runs the statements, and returns the first row of the last one's result. */
const sql = async (...statements: string[]) => {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    let rows: readonly postgres.Row[] = [];
    for (const statement of statements) rows = await client.unsafe(statement);
    return rows[0];
  } finally {
    await client.end({ timeout: 1 });
  }
};

test("Redis that hangs delays no answer, and is a warning", async () => {
  await ready();
  redis.freeze();
  const slowest_ms = await whileSaying("redis", /^warning: Redis does not answer/);
  expect(slowest_ms).toBeLessThan(prober_ms * busyness());
  expect((await readyz("")).status).toBe(200);
  redis.thaw();
  await until(async () => (await readyz()).checks.redis === "ok", 30_000, "Redis to answer");
});

test("Postgres that hangs delays no answer either, and the node is not ready", async () => {
  await ready();
  database.freeze();
  const slowest_ms = await whileSaying("database", /does not answer/);
  expect(slowest_ms).toBeLessThan(prober_ms * busyness());
  expect((await readyz("")).status).toBe(503);
  database.thaw();
  await ready();
});

test("a database that only reads can admit nothing", async () => {
  await ready();
  await sql("alter database postgres set default_transaction_read_only = on");
  await sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sluice'");
  await whileSaying("database", /^the database is read-only$/);
  expect((await readyz("")).status).toBe(503);
  await sql("set default_transaction_read_only = off", "alter database postgres reset default_transaction_read_only");
  await sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sluice'");
  await ready();
});

test("what a check writes is taken back: nothing stays held, and no table grows", async () => {
  await ready();
  const checked = async () =>
    Number((await sql("select n_tup_ins as n from pg_stat_user_tables where relname = 'usage_hold'"))?.n);
  const before = await checked();
  // Postgres also counts inserted rows that were rolled back.
  await until(async () => (await readyz()).status === 200 && (await checked()) > before, 30_000, "the node to check");
  expect(await sql("select count(*)::int as n from usage_hold")).toEqual({ n: 0 });
});

test("a database without room for a row can admit nothing", async () => {
  await ready();
  // A trigger raises the error that Postgres reports when the disk is full.
  await sql(`
    create function no_room() returns trigger language plpgsql as
      $$ begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$;
    create trigger no_room before insert on usage_hold execute function no_room()`);
  await whileSaying("database", /^the disk of the database is full$/);
  await sql("drop trigger no_room on usage_hold");
  await ready();
});

// The folder on which a small file system is mounted, if this user may mount one. That file system can really be full.
const disk = mkdtempSync("/tmp/sluice-disk-");
const hasDisk = mounted();
test.skipIf(!hasDisk)("a disk that is full, where one can be made", async () => {
  await ready();
  if (account.uid !== undefined) chownSync(disk, account.uid, account.gid!);
  await sql(`create tablespace small location '${disk}'`);
  await sql("alter table usage_hold set tablespace small; create table filler (text text) tablespace small");
  // Fills the disk completely, so that the table of holds cannot grow either.
  const fill = "insert into filler select repeat('x', 1000) from generate_series(1, 100)";
  await expect(
    (async () => {
      for (;;) await sql(fill);
    })(),
  ).rejects.toMatchObject({ code: "53100" });
  await whileSaying("database", /^the disk of the database is full$/);
  await sql("drop table filler");
  await sql("alter table usage_hold set tablespace pg_default");
  await ready();
  await sql("drop tablespace small");
});
afterAll(() => {
  if (hasDisk) execFileSync("umount", ["-l", disk]);
  rmSync(disk, { recursive: true, force: true });
});

function mounted(): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=512k", "tmpfs", disk], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

test("a schema of a newer build, unless that build left it usable; and one that was taken away", async () => {
  await ready();
  await sql("insert into schema_migration (name, checksum, additive) values ('9999_later', 'x', true)");
  // While the newer schema is usable, no response shows that the check has read it. So the test marks it as unusable,
  // and waits for the response that reports that.
  await sql("update schema_migration set additive = false where name = '9999_later'");
  await whileSaying("schema", /newer than this build.*9999_later/);
  await sql("update schema_migration set additive = true where name = '9999_later'");
  await ready();
  await sql("delete from schema_migration");
  await whileSaying("schema", /older than this build.*0001_baseline.*sluice migrate/);
  await lineOf(node, { event: "not_ready" });
  await lineOf(node, { event: "ready" });
});
