/**
 * Measures the cost of creating a key over the management interface, in a database without other keys and in one with
 * many: keys per second, CPU time of the node and of its database backends, and statements per key, one key at a time
 * and 16 concurrently. Run: bun bench/keys.ts --existing 10000 --keys 200. With --slow, also prints the statements that
 * took longest.
 */
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { freePort } from "../test/harness/daemon.ts";
import { startPostgres } from "../test/harness/services.ts";
import { startSluice } from "../test/harness/sluice.ts";
import { ran_us } from "./speed/process.ts";

const { values } = parseArgs({
  options: {
    existing: { type: "string", default: "10000" },
    keys: { type: "string", default: "200" },
    slow: { type: "boolean", default: false },
  },
});
const at_once = 16;
const organization = "bench";

await using ending = new AsyncDisposableStack();
const postgres = await startPostgres(undefined, () => ["shared_preload_libraries=pg_stat_statements"]);
ending.defer(() => postgres.stop());
const operatorPort = await freePort();
const env = { DATABASE_URL: postgres.url, SLUICE_OPERATOR_PORT: `${operatorPort}` };
const node = await startSluice({ store: "postgres", env });
ending.defer(async () => void (await node.stop()));
const db = await serverDatabase(postgres.url, { statement_ms: 3_600_000 });
ending.defer(() => db.close());
await db.query("create extension pg_stat_statements");
await node.json("org", "create", organization, "--plan", "unlimited");
const { token } = await node.json<{ token: string }>("operator", "create", "bench", "--role", "admin");

async function makeKey(name: string): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${operatorPort}/management/v1/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ organization, name, limits: { month: "50", requests_per_minute: 60 } }),
  });
  if (!answer.ok) throw new Error(`no key: ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
}

/**
 * Inserts keys with limits of their own, and the rows by which the ledger counts their usage, like those of `makeKey`.
 */
async function fill(count: number): Promise<void> {
  await db.query(
    `with made as (
      insert into api_key (id, organization_id, name, scopes, created_at, created_by)
      select gen_random_uuid(), o.id, 'filled ' || n, '{inference:create}', now(), 'bench'
      from organization o, generate_series(1, $1::int) n where o.slug = $2 returning id, organization_id
    ), counted as (
      insert into usage_subject (subject_id, organization_id, month_nanos, requests_per_minute, counted_from, summed_at)
      select id, organization_id, 50000000000, 60, now(), now() from made
    )
    insert into limit_value (subject_id, organization_id, kind, month_nanos, requests_per_minute, set_at, set_by)
    select id, organization_id, 'own', 50000000000, 60, now(), 'bench' from made`,
    [count, organization],
  );
  await db.query("vacuum analyze");
}

async function costs() {
  const backends = await db.query<{ pid: number }>(
    "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
  );
  const [statements] = await db.query<{ calls: number }>(
    "select coalesce(sum(calls), 0)::int as calls from pg_stat_statements where toplevel",
  );
  const postgres_us = backends.reduce((sum, { pid }) => sum + ran_us(pid), 0);
  return { node_us: ran_us(node.pid), postgres_us, statements: statements!.calls };
}

let made = 0;
async function measured(title: string, count: number, lanes: number): Promise<string[]> {
  for (let warm = 0; warm < 30; warm++) await makeKey(`key ${made++}`);
  const before = await costs();
  const began = performance.now();
  let left = count;
  const lane = async () => {
    while (left-- > 0) await makeKey(`key ${made++}`);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  const took_s = (performance.now() - began) / 1000;
  const after = await costs();
  const each = (of: keyof typeof before) => (after[of] - before[of]) / count;
  return [
    ...[title, `${lanes}`, (count / took_s).toFixed(0), (each("node_us") / 1000).toFixed(2)],
    ...[(each("postgres_us") / 1000).toFixed(2), each("statements").toFixed(1)],
  ];
}

const table = new Table({
  head: ["keys before", "at once", "keys a second", "node ms", "Postgres ms", "statements"],
  style: { head: [], border: [] },
});
async function measureBoth(title: string): Promise<void> {
  for (const lanes of [1, at_once]) table.push(await measured(title, Number(values.keys), lanes));
}
await measureBoth("none");
await fill(Number(values.existing));
await db.query("select pg_stat_statements_reset()");
await measureBoth(values.existing);
console.log(table.toString());

if (values.slow) {
  const slow = await db.query<{ calls: number; ms: number; query: string }>(
    `select calls::int, round(total_exec_time::numeric / calls, 3)::float as ms, left(regexp_replace(query, '\\s+', ' ', 'g'), 110) as query
    from pg_stat_statements where toplevel order by total_exec_time desc limit 25`,
  );
  for (const { calls, ms, query } of slow)
    console.log(`${`${calls}`.padStart(6)} ${ms.toFixed(3).padStart(9)} ms ${query}`);
}
