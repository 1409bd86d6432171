// Work that one node does for the whole fleet has a longer time limit of its own; statements for requests are cancelled
// much sooner.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { onOneNode } from "../../../src/stores/postgres/fleet.ts";
import { checkYear } from "../../../src/stores/postgres/full-check.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { kinds } from "./databases.ts";

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
  // With the time limit of requests, the statement would have been cancelled by now.
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

test("on the embedded database, whose session has every lock, only one of two does the work, and one that waits is next", async () => {
  const { db: embedded, drop } = await kinds[0]!.open();
  const gate = Promise.withResolvers<string>();
  const first = onOneNode(embedded, "test", () => gate.promise);
  const unasked = async () => "in vain";
  expect(await onOneNode(embedded, "test", unasked)).toBeNull();
  expect(await onOneNode(embedded, "test", unasked, { wait_ms: 20 })).toBeNull();
  expect(await onOneNode(embedded, "another", async () => "beside it")).toBe("beside it");
  const next = onOneNode(embedded, "test", async () => "next", { wait_ms: 60_000 });
  gate.resolve("first");
  expect(await Promise.all([first, next])).toEqual(["first", "next"]);
  const failing = onOneNode(embedded, "test", () => Promise.reject(new Error("it failed")));
  await expect(failing).rejects.toThrow("it failed");
  expect(await onOneNode(embedded, "test", async () => "after it")).toBe("after it");
  await drop();
});
