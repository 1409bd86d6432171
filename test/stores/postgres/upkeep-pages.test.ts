// The hourly upkeep reads the usage windows of one day, or those from more than a year ago, but none in between.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { keepUpPartitions, oldRows, settings, youngRows } from "../../../src/stores/postgres/partitions.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { until } from "../../harness/until.ts";
import { databaseForTests, setClock } from "./databases.ts";

setDefaultTimeout(120_000);

/**
 * SQL that creates ended session windows, spread over a year, each of another organization. They were checked:
 * `usage_seal` has a row for each.
 */
const fill = (windows: number) => `
  insert into usage_past
  select gen_random_uuid(), 'session', at, at + interval '5 hours', 0, 0
  from generate_series(0, ${windows - 1}) n
  cross join lateral (select now() - interval '360 days' + n * interval '359 days' / ${windows} as at) t;
  insert into usage_seal select subject_id, kind, starts_at, ends_at, 0, 0, now() from usage_past;`;

/** The statement with these values in place of its parameters. */
const literal = (text: string, parameters: readonly unknown[]) =>
  parameters.reduce<string>((made, value, at) => made.replaceAll(`$${at + 1}`, String(value)), text);

async function pagesOf(db: Pick<Database, "query">, text: string, parameters: unknown[] = []): Promise<number> {
  const explained = `explain (analyze, buffers, format json) ${literal(text, parameters)}`;
  const [row] = await db.query<{ "QUERY PLAN": unknown }>(explained);
  const said = row!["QUERY PLAN"];
  const [{ Plan: plan }] = typeof said === "string" ? JSON.parse(said) : said;
  return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
}

const few = 3_000;
const month = "usage_record_2001_01";
/** SQL that creates records of a node whose clock was set to 2001, the last of which ended today. */
const records = `
  select usage_partition(usage_record_id('2001-01-01Z'));
  insert into usage_record (request_id, organization_id, operation, model, stream, price_input, price_cached_input,
    price_cache_write, price_output, source, held, charged, uncharged, admitted_at, ended_at, outcome, recovered,
    input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, usage_source, xact)
  select usage_record_id(at), gen_random_uuid(), 'chat.completions', 'm', false, 0, 0, 0, 0, 'plan', 0, 5, 0, at,
    case n when ${few} then now() else at end, 'completed', false, 0, 0, 0, 0, 0, 'counted', n
  from generate_series(1, ${few}) n
  cross join lateral (select '2001-01-01Z'::timestamptz + n * interval '5 seconds' as at) t;`;

describe.each(databaseKinds(import.meta.path))("on %s", (kind) => {
  const db = databaseForTests(kind);
  test("the hourly look and the upkeep leave alone what they do not ask for", async () => {
    await db.exec(fill(60_000));
    for (const table of ["usage_past", "usage_seal"]) await db.query(`vacuum (analyze) ${table}`);
    const [table] = await db.query<{ pages: number }>("select (pg_relation_size('usage_past') / 8192)::int as pages");
    // The first execution also reads the catalog and plans the query.
    for (let turn = 0; turn < 2; turn++) await pagesOf(db, "select * from usage_differences('open')");
    expect(await pagesOf(db, "select * from usage_differences('open')")).toBeLessThan(table!.pages / 2);
    expect(await pagesOf(db, oldRows("usage_past", "ends_at"), [14, 5_000])).toBeLessThan(table!.pages / 2);
  });

  test("an index forgets what was deleted, so that its pages are not read for those times ever after", async () => {
    // This is the last hour of a month of upkeep, in which the last part of every index is processed.
    await setClock(db, new Date("2026-03-07T23:00:00Z"));
    const zero = "'00000000-0000-0000-0000-000000000000'";
    await db.query(`insert into usage_day
      select case n when 1 then timestamptz '2020-01-01Z' else '2026-03-07Z' end, gen_random_uuid(), ${zero}, ${zero},
        'm', 'chat.completions', 'completed', 1, 1, 0, 0, 0, 0, 0, 0, 0, 0
      from generate_series(1, 400) n`);
    await db.query("select brin_summarize_new_values('usage_day_by_start')");
    const longAgo = () =>
      db.transaction(async (tx) => {
        await tx.exec("set local enable_seqscan = off");
        const text = "select from usage_day where starts_at < '2021-01-01Z'";
        await pagesOf(tx, text);
        return pagesOf(tx, text);
      });
    expect(await longAgo()).toBeGreaterThan(10);
    // A transaction of another database that began before the deletion delays this until it ends.
    const narrowed = async () => {
      expect(await keepUpPartitions(db)).toEqual({ monthsAhead: 6, putOff: [] });
      return (await longAgo()) < 6;
    };
    await until(narrowed, 60_000, "the index to forget the deleted rows");
    await setClock(db, null);
  });
});

describe("on a server", () => {
  const db = databaseForTests("postgres");
  test("it summarises what is added to an index, in every month", async () => {
    const forgotten = await db.query(
      `select relname from pg_class where relam = (select oid from pg_am where amname = 'brin')
       and not coalesce(reloptions, '{}') && '{autosummarize=on}'`,
    );
    expect(forgotten).toEqual([]);
  });

  test("the upkeep finds what is old through indexes, however many rows there are", async () => {
    await db.exec(fill(few));
    await db.exec(records);
    const tables = ["usage_past", "usage_seal", month];
    for (const table of tables) await db.query(`vacuum (analyze) ${table}`);
    await db.query("update pg_class set reltuples = 5e7 where relname = any ($1)", [tables]);
    const lane = await db.lane(settings);
    const planOf = async (text: string) => JSON.stringify(await lane.query(`explain ${literal(text, [13, 5_000])}`));
    const questions = [youngRows(month), oldRows("usage_past", "ends_at"), oldRows("usage_seal", "ends_at")];
    for (const text of questions) expect(await planOf(text)).not.toContain("Seq Scan");
    await lane.close();
    expect(await keepUpPartitions(db)).toEqual({ monthsAhead: 6, putOff: [] });
    expect(await db.query("select to_regclass($1) as there", [month])).toEqual([{ there: month }]);
  });
});
