// Limits for models: what the ledger keeps of them, whatever store is under it.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { bare } from "../../../src/core/store/ids.ts";
import type { Admit, AdmitAnswer, Ledger } from "../../../src/core/store/ledger.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { admitOf, expectBalanced, newHex, openLedger, type Store } from "./ledger-stores.ts";
import { limitModels } from "./model-limits.ts";

const noon = new Date("2026-03-10T12:00:00.000Z");

for (const name of databaseKinds(import.meta.path)) {
  describe(`limits for models on ${name}`, () => {
    let store: Store;
    let book: Ledger;
    beforeAll(async () => {
      ({ store, book } = await openLedger(name));
    }, 60_000);
    afterAll(async () => {
      await expectBalanced(book);
      await store.close();
    }, 30_000);
    beforeEach(() => store.setClock(noon));

    test("a key's limit for a model refuses that model exactly, and no other", async () => {
      const organization = await store.newOrganization();
      const keyId = `key_${newHex()}`;
      const uuid = bare(organization, "org_");
      await limitModels(store.db, uuid, bare(keyId, "key_"), "acme/large", { session: 5_000 });
      const asked = (model: string): Admit => ({ ...admitOf(organization), keyId, model });
      const answers = (await book.run(Array.from({ length: 8 }, () => asked("acme/large")))) as AdmitAnswer[];
      expect(answers.map(({ answer }) => answer)).toEqual([...Array(5).fill("granted"), ...Array(3).fill("reserved")]);
      expect(answers[5]).toMatchObject({
        kinds: [],
        subjects: [
          { subject: "key", models: "acme/large", windows: { session: { limit: 5_000, held: 5_000 } }, running: 5 },
        ],
      });
      expect(await book.run([asked("acme/small")])).toMatchObject([{ answer: "granted" }]);
    });
  });
}
