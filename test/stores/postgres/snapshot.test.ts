// What a transaction with an old snapshot keeps alive costs those who come after it nothing: a batch, a sweep and a count
// of rates touch as many pages after hundreds of batches as after a few. On Postgres alone: the embedded database has one
// connection, and nobody stands by.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Ledger } from "../../../src/core/store/ledger.ts";
import type { Lane } from "../../../src/stores/postgres/database.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { batchCall, encodeBatch } from "../../../src/stores/postgres/ledger-batch.ts";
import { postgresRates } from "../../../src/stores/postgres/rates.ts";
import { admitOf, newRequestId, type Store, settleOf, stores } from "../../core/store/ledger-stores.ts";
import { ofOrganization } from "../../core/store/rates-stores.ts";
import { times } from "../../harness/depth.ts";

setDefaultTimeout(60_000);

const batches = 600;
/** Counts of rates after which as many entries count as ever: those of a minute, at two a second. */
const minute = 150;

describe("an old snapshot", () => {
  let store: Store;
  let book: Ledger;
  let bystander: Lane;
  let organization: string;
  beforeAll(async () => {
    store = await stores.postgres();
    book = ledger(store.db, { recovery: "checkpoint" });
    organization = await store.newOrganization();
    bystander = await (await store.another()).lane({});
    await bystander.query("begin isolation level repeatable read");
    await bystander.query("select count(*) from organization");
  });
  afterAll(async () => {
    await bystander.close();
    await book.close();
    await store.close();
  });

  /** Pages that a call touches, in a transaction that is thrown away; its plans are there already. */
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
    const spend = async () => {
      const command = admitOf(organization);
      await book.run([command]);
      await book.run([settleOf(command, 1)]);
    };
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

  test("costs a count of rates no more, by whatever it is counted", async () => {
    const rates = postgresRates(store.db, { answer_ms: 20_000 });
    for (const per_minute of [6_000, 1_000_000]) {
      let now_ms = Date.parse("2026-11-21T03:00:00.400Z");
      const subjects = ofOrganization(organization, { requestsPerMinute: per_minute, tokensPerMinute: null });
      const take = async () => {
        now_ms += 500;
        await store.setClock(new Date(now_ms));
        const asked = { organizationId: organization, requestId: newRequestId(), tokens: 5, tokens_min: 5, subjects };
        const answer = await rates.take(asked);
        if (answer.answer === "taken") await answer.correct(3);
      };
      const asked = () => {
        const singly = per_minute === 6_000;
        const owner = organization.slice(4);
        const claim = `(0,0,${owner},${owner},${newRequestId()},${singly},5,5,${per_minute},,)`;
        return pages("select * from usage_rates(array[$1::usage_rate_claim], '{}')", [claim]);
      };
      for (let count = 0; count < minute; count++) await take();
      const few = await asked();
      for (let count = 0; count < times(minute, batches); count++) await take();
      expect(await asked()).toBeLessThanOrEqual(1.3 * few + 10);
    }
    await rates.close();
  });
});
