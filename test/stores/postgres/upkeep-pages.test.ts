// The hourly upkeep reads the windows of a day, or those from before a year ago, and none of the windows between.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { oldRows } from "../../../src/stores/postgres/partitions.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { databaseForTests } from "./databases.ts";

setDefaultTimeout(120_000);

const windows = 60_000;

/**
 * Session windows that have ended, spread over a year, each of another organization. They are sealed: `usage_seal` has
 * a row for each.
 */
const fill = `
  insert into usage_past
  select gen_random_uuid(), 'session', at, at + interval '5 hours', 0, 0
  from generate_series(0, ${windows - 1}) n
  cross join lateral (select now() - interval '360 days' + n * interval '359 days' / ${windows} as at) t;
  insert into usage_seal select subject_id, kind, starts_at, ends_at, 0, 0, now() from usage_past;`;

async function pagesOf(db: Database, text: string, parameters: unknown[] = []): Promise<number> {
  const literal = parameters.reduce<string>((made, value, at) => made.replaceAll(`$${at + 1}`, String(value)), text);
  const [row] = await db.query<{ "QUERY PLAN": unknown }>(`explain (analyze, buffers, format json) ${literal}`);
  const said = row!["QUERY PLAN"];
  const [{ Plan: plan }] = typeof said === "string" ? JSON.parse(said) : said;
  return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
}

describe.each(databaseKinds(import.meta.path))("on %s", (kind) => {
  const db = databaseForTests(kind);
  test("the hourly look and the upkeep leave alone what they do not ask for", async () => {
    await db.exec(fill);
    for (const table of ["usage_past", "usage_seal"]) await db.query(`vacuum (analyze) ${table}`);
    const [table] = await db.query<{ pages: number }>("select (pg_relation_size('usage_past') / 8192)::int as pages");
    // The first time, plans and catalogs are read too.
    for (let turn = 0; turn < 2; turn++) await pagesOf(db, "select * from usage_differences('open')");
    expect(await pagesOf(db, "select * from usage_differences('open')")).toBeLessThan(table!.pages / 2);
    expect(await pagesOf(db, oldRows("usage_past", "ends_at"), [14, 5_000])).toBeLessThan(table!.pages / 2);
  });
});
