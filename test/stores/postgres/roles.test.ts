// Two database roles with the grants of deploy/roles.sql: one migrates, the other runs nodes. The second role can do
// all that a node does, but cannot hide its actions from the audit.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { migrate } from "../../../db/migrate.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { freshDatabase } from "../../harness/services.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { chat } from "./served.ts";

setDefaultTimeout(180_000);

const unique = randomUUID().slice(0, 8);
const [ownerRole, runRole] = [`sluice_owner_${unique}`, `sluice_run_${unique}`];
const grants = readFileSync(join(import.meta.dir, "../../../deploy/roles.sql"), "utf8").replaceAll(
  "sluice_run",
  runRole,
);

let fresh: { url: string; drop(): Promise<void> };
let admin: Database;
let owner: Database;
let runner: Database;
const urlOf = (role: string) => {
  const url = new URL(fresh.url);
  [url.username, url.password] = [role, "secret"];
  return url.href;
};

beforeAll(async () => {
  fresh = await freshDatabase();
  admin = await serverDatabase(fresh.url);
  for (const role of [ownerRole, runRole]) await admin.exec(`create role ${role} login password 'secret'`);
  const name = new URL(fresh.url).pathname.slice(1);
  await admin.exec(`alter database "${name}" owner to ${ownerRole}; alter schema public owner to pg_database_owner`);
  owner = await serverDatabase(urlOf(ownerRole));
  await migrate(owner);
  await owner.exec(grants);
  runner = await serverDatabase(urlOf(runRole));
});
afterAll(async () => {
  await Promise.all([owner?.close(), runner?.close()]);
  // The roles belong to the whole server, and can be dropped only after their grants on the database were revoked.
  await admin?.exec(
    `drop owned by ${runRole}; reassign owned by ${ownerRole} to current_user; drop owned by ${ownerRole}`,
  );
  await admin?.exec(`drop role ${runRole}; drop role ${ownerRole}`);
  await admin?.close();
  await fresh?.drop();
});

/** The SQLSTATE with which a statement of the running role fails. */
const refusal = (text: string) =>
  runner.exec(text).then(
    () => "allowed",
    (error: { code?: string }) => error.code,
  );

test("the running role serves, keeps books, makes keys and removes what it kept", async () => {
  const sluice = await startSluice({
    store: "pglite",
    env: { DATABASE_URL: urlOf(runRole), SLUICE_MIGRATE: "false" },
    config: "plans: { narrow: { requests_per_minute: 1, month: 1 } }\n",
  });
  try {
    await administers(sluice);
    await infers(sluice);
    expect((await sluice.fetch("/readyz")).status).toBe(200);
    expect((await sluice.json<{ differences?: unknown[] }>("usage", "check")).differences ?? []).toEqual([]);
    // The background work of a node is done when the node has stopped.
    expect(await sluice.stop()).toBe(0);
    expect(sluice.stderr()).not.toMatch(/permission denied|unreachable|unwritten|unforgotten|unkept|42501/);
  } finally {
    sluice.signal("SIGKILL");
  }
});

async function administers(sluice: Sluice): Promise<void> {
  const narrow = ["--org", "narrow"];
  await sluice.json("org", "create", "narrow", "--plan", "narrow");
  const { key, id } = await sluice.json<{ key: string; id: string }>("key", "create", ...narrow, "--name", "one");
  const statuses = [];
  for (let turn = 0; turn < 2; turn++) statuses.push((await chat(sluice, key)).status);
  // The second request exceeds the key's rate limit, and leaves a receipt.
  expect(statuses).toEqual([200, 429]);
  await until(async () => (await runner.query("select 1 from usage_refusal")).length > 0, 60_000, "the refusal's row");
  await sluice.json("org", "extra-usage", "narrow", "on", "--cap", "1");
  await sluice.json("org", "anchor", "narrow", new Date(Date.now() + 86_400_000).toISOString());
  await sluice.json("usage", "adjust", "narrow", "--window", "all", "--amount", "0.000000007", "--reason", "a test");
  await sluice.json("org", "suspend", "narrow");
  await sluice.json("key", "rotate", id);
  await sluice.json("key", "revoke", id);
  await sluice.json("org", "policy", "narrow", "--key-unused", "30d", "--content", "none");
  await sluice.json("org", "rename", "narrow", "--slug", "slim");
  expect((await sluice.cli("org", "create", "narrow")).stderr).toContain("is not used again");
  await sluice.json("org", "close", "slim", "--yes");
  expect((await runner.query("select 1 from audit_entry")).length).toBeGreaterThan(3);
}

async function infers(sluice: Sluice): Promise<void> {
  expect((await chat(sluice)).status).toBe(200);
  const { data } = (await (await sluice.fetch("/v1/models")).json()) as { data: { id: string }[] };
  const kept = await sluice.post("/v1/responses", { model: data[0]!.id, input: "hello" });
  const { id } = (await kept.json()) as { id: string };
  expect((await sluice.fetch(`/v1/responses/${id}`)).status).toBe(200);
  expect((await sluice.fetch(`/v1/responses/${id}`, { method: "DELETE" })).status).toBe(200);
  await until(async () => (await runner.query("select 1 from usage_record")).length >= 3, 60_000, "the records");
}

test("its upkeep makes partitions that are missing and drops those that are too old", async () => {
  const [last] = await owner.query<{ name: string }>(
    "select max(inhrelid::regclass::text) as name from pg_inherits where inhrelid::regclass::text ~ '[0-9]{4}_[0-9]{2}$'",
  );
  const name = last!.name;
  await owner.exec(`drop table ${name}`);
  await owner.exec(`create table usage_record_2001_01 partition of usage_record
    for values from (usage_record_id('2001-01-01')) to (usage_record_id('2001-02-01'))`);
  await owner.exec("update organization set closed_at = closed_at - interval '16 months' where slug = 'slim'");
  const book = ledger(runner, { recovery: "checkpoint" });
  expect(await book.maintain()).toEqual({ monthsAhead: 6, putOff: [] });
  await book.audit();
  await book.close();
  const names = (await runner.query<{ name: string }>("select name from usage_partitions()")).map((one) => one.name);
  expect(names).toContain(name);
  expect(names).not.toContain("usage_record_2001_01");
  // The upkeep has also removed the rows of an organization that was closed 16 months ago; rows of an open organization
  // are kept.
  expect(await runner.query("select 1 from organization where slug = 'slim'")).toEqual([]);
  await runner.query("select organization_forget(id) from organization");
  expect(await runner.query("select 1 from organization where slug = 'test'")).toHaveLength(1);
  // The function keeps partitions whose retention has not passed, whichever role calls it.
  await runner.query("select usage_drop_month($1)", [name]);
  expect((await runner.query("select to_regclass($1) as there", [name]))[0]).toEqual({ there: name });
  // The function that created the partition runs with its owner's rights, so that owner also owns the partition.
  expect(await refusal(`drop table ${name}`)).toBe("42501");
});

const thisMonth = `usage_record_${new Date().toISOString().slice(0, 7).replace("-", "_")}`;

test.each([
  "drop table usage_record",
  `drop table ${thisMonth}`,
  "truncate usage_record",
  "delete from usage_record",
  `delete from ${thisMonth}`,
  "update usage_record set ended_at = now()",
  "delete from audit_entry",
  "update audit_entry set actor = 'nobody'",
  "delete from organization",
  "delete from api_key",
  "truncate usage_now",
  "alter table organization add column more text",
  `alter table usage_record detach partition ${thisMonth}`,
  "create table more (one integer)",
  "create function more() returns integer language sql as 'select 1'",
  "create or replace function store_now() returns timestamptz language sql as $$ select now() + interval '2 years' $$",
  "alter function usage_drop_month(text) reset search_path",
  "insert into schema_migration (name, checksum) values ('0999_more', '')",
  "delete from schema_migration",
  `set role ${ownerRole}`,
])("it may not: %s", async (text) => {
  expect(await refusal(text)).toBe("42501");
});

test("a temporary object of its own does not come before the owner's in the function that runs as the owner", async () => {
  const found = await runner.query<{ path: string }>(
    "select proname || ': ' || array_to_string(proconfig, ';') as path from pg_proc where prosecdef order by 1",
  );
  expect(found.map(({ path }) => path)).toEqual([
    "organization_forget: search_path=public, pg_temp",
    "usage_drop_month: search_path=public, pg_temp",
    "usage_narrow: search_path=public, pg_temp",
    "usage_partition: search_path=public, pg_temp",
  ]);
});

test("every table has its grants: the running role may insert into each but those that migrations fill", async () => {
  const written = await admin.query<{ name: string }>(
    `select relname as name from pg_class where relkind in ('r', 'p') and not relispartition
     and relnamespace = 'public'::regnamespace and not has_table_privilege($1, oid, 'insert')
     order by name`,
    [runRole],
  );
  expect(written).toEqual([
    ...[{ name: "audit_head" }, { name: "limit_change_head" }, { name: "schema_migration" }, { name: "usage_ledger" }],
  ]);
});

test("the file may be run again", async () => {
  await owner.exec(grants);
});
