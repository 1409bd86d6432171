// The old row versions that a long-running snapshot keeps do not slow later transactions down: a batch and a sweep
// touch as many pages after hundreds of batches as after a few. Tested on Postgres alone: the embedded database has one
// connection, so no other transaction can be open.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Lane } from "../../../src/stores/postgres/database.ts";
import type { Book } from "../../../src/stores/postgres/ledger.ts";
import { batchCall, encodeBatch } from "../../../src/stores/postgres/ledger-batch.ts";
import { admitOf, asking, openLedger, type Store, settleOf } from "../../core/store/ledger-stores.ts";

setDefaultTimeout(60_000);

const batches = 600;

describe("an old snapshot", () => {
  let store: Store;
  let book: Book;
  let bystander: Lane;
  let organization: string;
  beforeAll(async () => {
    ({ store, book } = await openLedger("postgres"));
    organization = await store.newOrganization();
    bystander = await (await store.another()).lane({});
    await bystander.query("begin isolation level repeatable read");
    await bystander.query("select count(*) from organization");
  });
  afterAll(async () => {
    await bystander.close();
    await store.close();
  });

  /**
   * The number of pages that a query touches, in a transaction that is rolled back. A first execution has planned the
   * query.
   */
  const pages = async (text: string, parameters: readonly unknown[]) => {
    const counts = await store.db.transaction(async (tx) => {
      const found: number[] = [];
      for (let time = 0; time < 2; time++) {
        await tx.exec("savepoint before");
        const [row] = await tx.query<Record<string, unknown>>(
          `explain (analyze, buffers, timing off, format json) ${text}`,
          parameters,
        );
        const [{ Plan: plan }] = row!["QUERY PLAN"] as [{ Plan: Record<string, number> }];
        found.push(plan["Shared Hit Blocks"]! + plan["Shared Read Blocks"]!);
        await tx.exec("rollback to savepoint before");
      }
      return found;
    });
    return counts[1]!;
  };
  const pagesOfBatch = async () => {
    const running = admitOf(organization);
    await book.run([running]);
    const count = await pages(batchCall, encodeBatch([admitOf(organization), settleOf(running, 1)]));
    await book.run([settleOf(running, 1)]);
    return count;
  };
  const pagesOfSweep = () => pages("select * from usage_recover(100, false, '{}', usage_record_id(store_now()))", []);

  test("costs a batch and a sweep no more after many batches than after a few", async () => {
    const { serve } = asking(book);
    const spend = () => serve(admitOf(organization), 1);
    for (let count = 0; count < 40; count++) await spend();
    const [batch, sweep] = [await pagesOfBatch(), await pagesOfSweep()];
    for (let count = 0; count < batches; count++) await spend();
    expect(await pagesOfBatch()).toBeLessThanOrEqual(1.3 * batch + 10);
    expect(await pagesOfSweep()).toBeLessThanOrEqual(sweep + 10);
    const [row] = await store.db.query<{ rows: number; used: number }>(
      "select count(*)::int as rows, max(used[1])::int as used from usage_now",
    );
    expect(row).toEqual({ rows: 1, used: 642 });
  });
});
