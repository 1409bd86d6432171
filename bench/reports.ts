// Measures how long reports take: `bun bench/reports.ts [months] [keys] [turns]`. Fills the roll-ups of the given
// months as if each month had 20 million records of 1,000 keys and 3 models. Adds records of the last minute, which are
// not in the roll-ups yet. Then requests reports of a month and prints their times. The database's own background work,
// such as autovacuum, is not stopped.

import { readFileSync } from "node:fs";
import Table from "cli-table3";
import { migrate } from "../db/migrate.ts";
import type { ManagementContext } from "../src/admin/management/context.ts";
import { focusGroups, reportFocus } from "../src/admin/management/focus.ts";
import { reportVerbs } from "../src/admin/management/reports.ts";
import type { ReportGroup, ReportQuery } from "../src/admin/store/report.ts";
import { ledger } from "../src/stores/postgres/ledger.ts";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { admitOf, newHex, settleOf } from "../test/core/store/ledger-stores.ts";
import { freshDatabase } from "../test/harness/services.ts";

const [months = 13, keys = 1000, turns = 40] = process.argv.slice(2, 5).map(Number);
const organizations = 50;
const records_a_month = 20_000_000;
/**
 * The number of records that are not in the roll-ups yet: twenty times those of half a minute at the month's mean rate.
 */
const unread = 5_000;

/**
 * Inserts the roll-up rows of one day for every key and model: two outcomes, and failures for every tenth key. Costs
 * are proportional to the number of records.
 */
const fill = (table: string, step: string) => `
  insert into ${table}
  select t.at, o.id, k.id, k.team_id, 'acme/writer-' || m, 'chat.completions', c.outcome, c.records, c.records, c.records * 800, c.records * 90, 0,
    c.records * 300, 0, c.records * 106720 + k.number, 0, 0, c.records * 80000 + k.number, c.records * 720, 0, c.records * 26000
  from generate_series($1::timestamptz, $1::timestamptz + interval '1 day' - interval '${step}', '${step}') t (at)
  cross join bench_key k join organization o on o.id = k.organization_id
  cross join generate_series(1, 3) m
  cross join lateral (values ('completed', $2::bigint), ('cancelled', 2), ('failed', 1)) c (outcome, records)
  where c.outcome = 'completed' or (c.outcome = 'cancelled' and k.number % 2 = 0) or k.number % 10 = 0`;

const database = await freshDatabase();
const db = await serverDatabase(database.url);
await migrate(db);
await db.exec(`
  create table bench_key as select gen_random_uuid() as id, n as number, null::uuid as organization_id,
    ('00000000-0000-7000-8000-0000000' || lpad((n % ${10 * organizations})::text, 5, '0'))::uuid as team_id
    from generate_series(1, ${keys}) n;
  insert into organization (id, slug, name, anchor_at) select gen_random_uuid(), 'org-' || n, 'Organization ' || n, '2026-01-31Z'
    from generate_series(1, ${organizations}) n;
  update bench_key k set organization_id = o.id from organization o where o.slug = 'org-' || (k.number % ${organizations} + 1);
  insert into api_key (id, organization_id, name, scopes)
    select id, organization_id, 'key ' || number, '{inference:create}' from bench_key;`);
const last = new Date(Date.UTC(2026, 10, 1));
const first = new Date(Date.UTC(2026, 10 - months + 1, 1));
const end = new Date(Date.UTC(2026, 11, 1));
const began_ms = performance.now();
for (let day = first.getTime(); day < end.getTime(); day += 86_400_000) {
  const records = Math.round(records_a_month / 30 / keys / 3);
  await db.query(fill("usage_day", "1 day"), [new Date(day), records]);
  // Hourly roll-ups are filled for two days only, because that takes long.
  if (day >= last.getTime() && day < last.getTime() + 2 * 86_400_000)
    await db.query(fill("usage_hour", "1 hour"), [new Date(day), Math.ceil(records / 24)]);
}
await db.exec("vacuum analyze usage_day");
await db.exec("vacuum analyze usage_hour");
// Parallel workers are off, so that one process runs each query, and its CPU time can be measured on a busy machine.
await db.exec(`alter database ${new URL(database.url).pathname.slice(1)} set max_parallel_workers_per_gather = 0`);
const reader = await serverDatabase(database.url);
const book = ledger(reader, { recovery: "checkpoint" });
const [{ id }] = (await db.query<{ id: string }>("select id from organization limit 1")) as [{ id: string }];
const owner = `org_${id.replaceAll("-", "")}`;
const seen = Array.from({ length: 20 }, () => `key_${newHex()}`);
for (let at = 0; at < unread; at += 250) {
  const admits = Array.from({ length: 250 }, (_, n) => admitOf(owner, { keyId: seen[n % seen.length]! }));
  await book.run(admits);
  await book.run(admits.map((one) => settleOf(one, 700)));
}
const [size] = await db.query<{ days: number; hours: number; bytes: number }>(
  "select (select count(*) from usage_day) as days, (select count(*) from usage_hour) as hours, pg_total_relation_size('usage_day') as bytes",
);
console.log(
  `${size!.days} rows of days (${Math.round(size!.bytes / 2 ** 20)} MiB), ${size!.hours} of hours, ${unread} records that are in none; ${Math.round((performance.now() - began_ms) / 1000)} s`,
);

/** The reports to measure. Unless they have a time range of their own, they cover the last month. */
const reports: Record<string, [ReportGroup[], Partial<ReportQuery>]> = {
  "a month by organization": [["organization"], {}],
  "a month by team": [["organization", "team"], {}],
  "a month by key": [["key"], {}],
  "a month by key and model": [["organization", "key", "model"], {}],
  "a month by day and model": [["day", "model"], {}],
  "a month by day, key and model (FOCUS)": [["day", "organization", "team", "key", "model", "operation"], {}],
  "a month of one organization by day and key": [["day", "key"], { organizationId: owner }],
  "an early month by organization": [["organization"], { from: first, to: monthAfter(first) }],
  "all months by month and organization": [["month", "organization"], { from: first }],
  "a day by hour and model": [["hour", "model"], { to: new Date(last.getTime() + 86_400_000) }],
};
const table = new Table({
  head: ["report", "rows", "p50 ms", "p95 ms", "server's CPU, ms"],
  style: { head: [], border: [] },
});
for (const [name, [by, change]] of Object.entries(reports)) {
  const query = { from: last, to: end, by, organizationId: null, rows_max: 100_000, ...change };
  const times: number[] = [];
  let rows = 0;
  await book.report(query);
  const before_us = await backends_us();
  for (let turn = 0; turn < turns; turn++) {
    const start_ms = performance.now();
    rows = (await book.report(query)).rows?.length ?? Number.NaN;
    times.push(performance.now() - start_ms);
  }
  times.sort((one, other) => one - other);
  table.push([
    name,
    rows,
    ...[quantileOf(times, 0.5), quantileOf(times, 0.95), ((await backends_us()) - before_us) / 1000 / turns].map(
      (one) => one.toFixed(0),
    ),
  ]);
}
console.log(table.toString());

// The export in the FOCUS format for costs, with three lines per row. It is measured for ten days, which give 90,000
// lines, and for the whole month.
const focus = new Table({
  head: ["FOCUS", "rows", "lines", "MB", "p50 ms", "p95 ms", "server's CPU, ms", "node's CPU, ms"],
  style: { head: [], border: [] },
});
const context = {
  ledger: { now: async () => end, report: book.report },
  catalog: async () => ({ billing: { currency: "EUR", provider: "Example AI" } }),
  narrowedTo: async () => undefined,
} as unknown as ManagementContext;
for (const [name, to] of [
  ["of ten days: 90,000 lines", new Date(last.getTime() + 10 * 86_400_000)],
  ["of a month", end],
] as const) {
  const times: number[] = [];
  let [rows, lines, characters] = [0, 0, 0];
  const [server_us, node] = [await backends_us(), process.cpuUsage()];
  for (let turn = 0; turn < turns; turn++) {
    const start_ms = performance.now();
    const report = await reportVerbs[0].act(context, { from: last, to, by: focusGroups(null) });
    [rows, lines, characters] = [report.rows.length, -1, 0];
    for (const line of reportFocus(report)) {
      lines += 1;
      characters += line.length;
    }
    times.push(performance.now() - start_ms);
  }
  times.sort((one, other) => one - other);
  const { user, system } = process.cpuUsage(node);
  focus.push([
    ...[name, rows, lines, (characters / 1e6).toFixed(0)],
    ...[quantileOf(times, 0.5), quantileOf(times, 0.95)].map((one) => one.toFixed(0)),
    ...[(await backends_us()) - server_us, user + system].map((us) => (us / 1000 / turns).toFixed(0)),
  ]);
}
console.log(focus.toString());

// The cost of adding new records to the roll-ups: an hour's records are written in batches, then read and summed up.
// The CPU time is that of the backend, counted by the kernel.
const lane = await db.lane({ max_parallel_workers_per_gather: "0" });
const [backend] = (await lane.query<{ pid: number }>("select pg_backend_pid() as pid")) as [{ pid: number }];
const cpu_us = () => Number(readFileSync(`/proc/${backend.pid}/schedstat`, "utf8").split(" ")[0]) / 1000;
for (let batch = 0; batch < 400; batch++) {
  await db.query(
    `insert into usage_record select overlay(gen_random_uuid()::text placing left(usage_record_id(now())::text, 13) from 1 for 13)::uuid, k.organization_id, k.id, 'chat.completions', 'acme/writer-' || n % 3 + 1,
       true, 1, 1, 1, 1, 'plan', 900, 700, 0, now() - n * interval '1 second', now(), 'completed', null, null, false, 800, 90, 0, 300, 0,
       'reported', now(), now() + interval '5 hours', null, 0, 700, now(), now() + interval '7 days', null, 0, 700,
       now(), now() + interval '30 days', null, 0, 700, 'main', 1, null, 12, null
     from generate_series(1, 500) n join bench_key k on k.number = ($1::int * 7 + n) % ${keys} + 1`,
    [batch],
  );
}
const piece = `(select read_until from usage_audit), pg_snapshot_xmin(pg_current_snapshot())::text::bigint`;
for (const [name, statement] of [
  ["read once before", `select count(*) from usage_recorded(${piece})`],
  ["the windows alone", `select count(*) from usage_recorded(${piece})`],
  ["the pass, with tallies and roll-ups", "select usage_audit_read(1000000000)"],
] as const) {
  const [{ count }] = (await db.query<{ count: number }>(
    "select count(*) as count from usage_record where xact >= (select read_until from usage_audit)",
  )) as [{ count: number }];
  const before_us = cpu_us();
  await lane.query(statement);
  const took_us = cpu_us() - before_us;
  console.log(`${name}: ${count} records, ${(took_us / count).toFixed(2)} µs a record of the server's CPU`);
}
await lane.close();
await book.close();
await reader.close();
await db.close();
await database.drop();

/** The given quantile of sorted times. */
function quantileOf(times: readonly number[], share: number): number {
  return times[Math.min(times.length - 1, Math.ceil(times.length * share) - 1)]!;
}

function monthAfter(at: Date): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1));
}

/** The CPU time of all sessions of the database, counted by the kernel. */
async function backends_us(): Promise<number> {
  const pids = await db.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()",
  );
  const used = pids.map(({ pid }) => Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1000);
  return used.reduce((sum, one) => sum + one, 0);
}
