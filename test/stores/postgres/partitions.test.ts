// The upkeep of the ledger's partitions blocks no other work, and does not wait itself: it postpones work whose locks
// are not free. Tested on Postgres alone, where other sessions read meanwhile; the rules of both stores are tested in
// test/core/store/ledger.test.ts.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Database, Lane } from "../../../src/stores/postgres/database.ts";
import type { Book } from "../../../src/stores/postgres/ledger.ts";
import { keepUpPartitions } from "../../../src/stores/postgres/partitions.ts";
import { admitOf, asking, openLedger, type Store } from "../../core/store/ledger-stores.ts";
import { openDatabase } from "./databases.ts";

setDefaultTimeout(60_000);

describe("upkeep", () => {
  let store: Store;
  let other: Database;
  let book: Book;
  let bystander: Lane;
  let organization: string;
  beforeAll(async () => {
    ({ store, book } = await openLedger("postgres"));
    other = await store.another();
    organization = await store.newOrganization();
  });
  afterAll(() => store.close());
  beforeEach(async () => {
    bystander = await other.lane({});
    await bystander.query("begin");
  });
  afterEach(() => bystander.close());

  const serve = async () =>
    expect(await asking(book).serve(admitOf(organization), 5)).toMatchObject({ answer: "settled" });
  /**
   * Serves requests before, during and after `work`. Their IDs have today's date, whatever the store's clock says, so
   * the partition of this month is not empty and is kept.
   */
  const servingBeside = async <T>(work: () => Promise<T>): Promise<T> => {
    await serve();
    let isOver = false;
    const ended = work().finally(() => {
      isOver = true;
    });
    ended.catch(() => {});
    while (!isOver) await serve();
    await serve();
    return ended;
  };
  const months = async () =>
    (await other.query<{ name: string }>("select name from usage_partitions() order by 1")).map((one) => one.name);

  test("months are made ahead while somebody reads the records, and requests go on", async () => {
    await bystander.query("select count(*) from usage_record");
    await store.setClock(new Date("2031-03-31T23:59:00Z"));
    expect(await servingBeside(() => book.maintain())).toMatchObject({ monthsAhead: 6 });
    expect(await months()).toContain("usage_record_2031_09");
    // The reader has read during the whole test, without being blocked.
    await bystander.query("select count(*) from usage_record");
  });

  test("an old month that somebody reads is dropped when they have finished, and requests go on meanwhile", async () => {
    await store.setClock(new Date("2031-03-31T23:59:00Z"));
    await book.maintain();
    await bystander.query("select count(*) from usage_record");
    await store.setClock(new Date("2032-05-01T00:00:00Z"));
    const { monthsAhead, putOff } = await servingBeside(() => book.maintain());
    expect(monthsAhead).toBe(6);
    expect(putOff).toContain("usage_record_2031_03");
    expect(await months()).toContain("usage_record_2031_03");
    // The upkeep does not revert its unfinished removal of the partition, which a reader still uses. That blocks no
    // requests either.
    expect((await servingBeside(() => book.maintain())).putOff).toContain("usage_record_2031_03");
    await bystander.query("commit");
    expect(await servingBeside(() => book.maintain())).toEqual({ monthsAhead: 6, putOff: [] });
    expect(await months()).not.toContain("usage_record_2031_03");
  });

  test("where a month cannot be made, those that are left are counted, and the failure is told", async () => {
    await store.setClock(new Date("2035-03-31T23:59:00Z"));
    expect((await book.maintain()).monthsAhead).toBe(6);
    await store.setClock(new Date("2035-05-01T00:00:00Z"));
    await bystander.query("commit");
    await store.db.exec("alter function usage_partition(uuid) rename to usage_partition_away");
    try {
      expect(await book.maintain()).toMatchObject({ monthsAhead: 4, failure: { code: "42883" } });
    } finally {
      await store.db.exec("alter function usage_partition_away(uuid) rename to usage_partition");
    }
    expect(await book.maintain()).toEqual({ monthsAhead: 6, putOff: [] });
    await bystander.query("begin");
  });

  test("one node of the fleet does it at a time; the others only look", async () => {
    await bystander.query("select pg_advisory_xact_lock(hashtextextended('usage_upkeep', 0))");
    await store.setClock(new Date("2041-01-01T00:00:00Z"));
    expect(await book.maintain()).toEqual({ monthsAhead: 0, putOff: [] });
    await bystander.query("commit");
    expect(await book.maintain()).toMatchObject({ monthsAhead: 6 });
  });

  test("the first upkeep of a database puts nothing off, however long ago it was made, and nothing is old before it", async () => {
    const { db, drop } = await openDatabase();
    await db.exec(`create or replace function store_now() returns timestamptz language sql
      as $$ select clock_timestamp() + interval '90 days' $$`);
    expect(await db.query("select usage_upkept_at() = '-infinity' as yes")).toEqual([{ yes: true }]);
    expect(await keepUpPartitions(db)).toEqual({ monthsAhead: 6, putOff: [] });
    expect(await db.query("select usage_upkept_at() > now() + interval '89 days' as yes")).toEqual([{ yes: true }]);
    await drop();
  });
});
