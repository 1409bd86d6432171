// Warming up the ledger: what is done is as real as any request's, nobody else sees it, and nothing of it stays.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { DryRunCaller, DryRunning } from "../../../src/core/store/dry-run.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { Ledger } from "../../../src/core/store/ledger.ts";
import type { StoreWatcher } from "../../../src/core/store/watcher.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { admitOf, openLedger, type Store, settleOf } from "./ledger-stores.ts";

const never = new AbortController().signal;

function caller(): DryRunCaller {
  const [organizationId, keyId] = [idOf(Bun.randomUUIDv7(), "org_"), idOf(Bun.randomUUIDv7(), "key_")];
  return { organizationId, keyId, keyHash: crypto.getRandomValues(new Uint8Array(32)), plan: "pro" };
}

for (const name of databaseKinds(import.meta.path)) {
  describe(`a dry run on ${name}`, () => {
    let store: Store;
    let book: Ledger & DryRunning;
    /** How many rows each table has. */
    const rows = async () => {
      const tables = await store.db.query<{ name: string }>(
        "select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1",
      );
      const counts = tables.map(async ({ name }) => {
        const [row] = await store.db.query<{ count: number }>(`select count(*) as count from ${name}`);
        return [name, row!.count] as const;
      });
      return Object.fromEntries(await Promise.all(counts));
    };

    beforeAll(async () => {
      ({ store, book } = await openLedger(name));
    }, 60_000);
    afterAll(async () => {
      expect(await book.check()).toEqual([]);
      await store.close();
    }, 30_000);

    test("carries out every verb, and leaves no row behind", async () => {
      const before = await rows();
      const me = caller();
      const said: string[] = [];
      await book.dryRun(
        me,
        async ({ run, credential }) => {
          expect(credential).toMatchObject({
            key: { id: me.keyId },
            organization: { id: me.organizationId, plan: "pro" },
          });
          const admit = admitOf(me.organizationId);
          const names = { requestId: admit.requestId, organizationId: me.organizationId, number: 1 };
          const answers = await run([
            admit,
            { verb: "grow", ...names, limits: admit.limits, nanosTotal: 2000, nanosTotal_min: 2000 },
            { verb: "checkpoint", ...names, usage: noUsage, lease_ms: 1000 },
            settleOf(admit, 700),
          ]);
          said.push(...answers.map(({ answer }) => answer));
        },
        never,
      );
      const once = ["granted", "granted", "extended", "settled"];
      // The server has two connections for batches.
      expect(said).toEqual(name === "postgres" ? [...once, ...once] : once);
      expect(await rows()).toEqual(before);
    });

    test("is announced to no watcher, and the next batch is", async () => {
      const other = ledger(store.db, { recovery: "checkpoint" });
      let answered = 0;
      const watcher: StoreWatcher = { answered: () => void answered++, opened() {}, lost() {} };
      store.db.watch(watcher);
      await other.dryRun(caller(), async ({ run }) => void (await run([])), never);
      expect(answered).toBe(0);
      await other.run([admitOf(await store.newOrganization())]);
      expect(answered).toBeGreaterThan(0);
      await other.close();
    });

    test("that fails is rolled back too, and batches are carried as ever", async () => {
      const before = await rows();
      const other = ledger(store.db, { recovery: "checkpoint" });
      const failing = other.dryRun(
        caller(),
        async ({ run }) => {
          await run([admitOf("org_00000000000070008000000000000001")]);
          throw new Error("on purpose");
        },
        never,
      );
      await expect(failing).rejects.toThrow("on purpose");
      expect(await rows()).toEqual(before);
      const admit = admitOf(await store.newOrganization());
      expect(await other.run([admit])).toMatchObject([{ answer: "granted" }]);
      expect(await other.run([settleOf(admit, 10)])).toMatchObject([{ answer: "settled" }]);
      await other.close();
      expect(await book.receiptOfAny(admit.requestId)).toMatchObject({ outcome: "completed" });
    });
  });
}

describe("a dry run on postgres", () => {
  test("takes in no batch that is sent meanwhile, and is given up at the signal", async () => {
    const { store, book } = await openLedger("postgres");
    const admit = admitOf(await store.newOrganization());
    const began = Promise.withResolvers<void>();
    const over = new AbortController();
    const running = book.dryRun(
      caller(),
      async ({ run }) => {
        began.resolve();
        await new Promise((resolve) => over.signal.addEventListener("abort", resolve));
        await run([admit]);
      },
      over.signal,
    );
    const ended = running.then(
      () => "well",
      () => "given up",
    );
    await began.promise;
    expect(await book.run([admit])).toMatchObject([{ answer: "granted" }]);
    over.abort();
    const [row] = await store.db.query<{ holds: number }>("select count(*) as holds from usage_hold");
    expect(row!.holds).toBe(1);
    expect(await Promise.race([ended, Bun.sleep(5000)])).toBe("given up");
    await store.close();
  }, 30_000);
});
