// Work that one node of the fleet does has time of its own: statements of requests end much sooner.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { onOneNode } from "../../../src/stores/postgres/fleet.ts";
import { checkYear } from "../../../src/stores/postgres/full-check.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";

setDefaultTimeout(120_000);

const statement_ms = 300;
let fresh: { url: string; drop(): Promise<void> };
let db: Database;
beforeAll(async () => {
  fresh = await migratedDatabase();
  db = await serverDatabase(fresh.url, { statement_ms });
});
afterAll(() => db.close().finally(fresh.drop));

test("a statement of the upkeep may take longer than one of a request", async () => {
  const long = `select pg_sleep(${(statement_ms * 6) / 1_000})`;
  await expect(db.query(long)).rejects.toMatchObject({ code: "57014" });
  // A client that was asked for as long as a request would have given the connection up by now.
  await onOneNode(db, "test", (lane) => lane.query(long));
});

test("a full check removes what an interrupted one has left, however much that is", async () => {
  const other = await serverDatabase(fresh.url);
  await other.exec(`insert into usage_recount
    select gen_random_uuid(), 'week', '2026-03-03Z', '2026-03-10Z', 5, 1 from generate_series(1, 150000)`);
  expect(await checkYear(db, true)).toEqual([]);
  expect(await other.query("select 1 from usage_recount limit 1")).toEqual([]);
  await other.close();
});
