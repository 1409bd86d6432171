// A check of the year in pieces says what one statement would say, and is right while requests come and go
// (docs/design/metering.md, Audit).

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { differencesIn } from "../../src/postgres/audit.ts";
import { differing } from "../../src/postgres/comparing.ts";
import type { Database } from "../../src/postgres/database.ts";
import { ledger } from "../../src/postgres/ledger.ts";
import { bare } from "../../src/store/ids.ts";
import type { Ledger, LedgerDifference } from "../../src/store/ledger.ts";
import { admitOf, type Store, settleOf, stores } from "./ledger-stores.ts";

setDefaultTimeout(60_000);

const noon = new Date("2026-03-10T12:00:00.000Z");
const count = 130;

for (const name of ["postgres", "pglite"] as const) {
  describe(`a check in pieces on ${name}`, () => {
    let store: Store;
    let book: Ledger;
    let organizations: string[];
    beforeAll(async () => {
      store = await stores[name]();
      book = ledger(store.db, { recovery: "checkpoint" });
      await store.setClock(noon);
      organizations = [];
      for (let n = 0; n < count; n++) organizations.push(await store.newOrganization());
      for (const organization of organizations) await serve(organization, 7);
      // What ended, and is sealed.
      await store.setClock(new Date(noon.getTime() + 30 * 3_600_000));
      for (const organization of organizations) await serve(organization, 5);
    });
    afterAll(async () => {
      await book.close();
      await store.close();
    });

    async function serve(organization: string, units: number): Promise<void> {
      const admit = admitOf(organization);
      await book.run([admit]);
      await book.run([settleOf(admit, units)]);
    }

    /** Which subjects each statement compared. */
    function watched(): { db: Database; pieces: string[][] } {
      const pieces: string[][] = [];
      const { db } = store;
      const transaction: Database["transaction"] = (work, options) =>
        db.transaction((tx) => {
          const query: typeof tx.query = (text, parameters) => {
            if (text.includes("usage_differences(")) pieces.push((parameters ?? []).slice(2).map(String));
            return tx.query(text, parameters);
          };
          return work({ ...tx, query });
        }, options);
      return { db: { ...db, query: db.query.bind(db), transaction }, pieces };
    }

    const ordered = (differences: LedgerDifference[]) =>
      differences.map((one) => JSON.stringify(one)).toSorted((one, other) => (one < other ? -1 : 1));

    test("the pieces are many, adjoin, and leave no id out", async () => {
      const { db, pieces } = watched();
      expect(await differing(db, null)).toEqual([]);
      const [measured, ...compared] = pieces;
      expect(measured![0]).toBe(measured![1]!);
      expect(compared.length).toBeGreaterThan(1);
      expect(compared[0]![0]).toBe("00000000-0000-0000-0000-000000000000");
      expect(compared.at(-1)![1]).toBe("ffffffff-ffff-ffff-ffff-ffffffffffff");
      for (const [at, [after]] of compared.slice(1).entries()) expect(after).toBe(compared[at]![1]!);
    });

    test("requests that come and go meanwhile are no difference", async () => {
      let isOver = false;
      const load = [0, 1, 2].map(async (lane) => {
        for (let turn = lane; !isOver; turn += 3) await serve(organizations[turn % organizations.length]!, 3);
      });
      try {
        for (let turn = 0; turn < 6; turn++) expect(await differing(store.db, null)).toEqual([]);
      } finally {
        isOver = true;
        await Promise.all(load);
      }
    });

    test("what differs is found once, wherever it is, as by one statement", async () => {
      const some = (step: number) => organizations.filter((_, at) => at % step === 1).map((id) => bare(id, "org_"));
      await book.rollUp();
      const harms: [string, number][] = [
        ["update usage_past set used = used + 1 where kind = 'session' and subject_id = any ($1)", 11],
        ["update usage_now set used[2] = used[2] + 1 where subject_id = any ($1)", 13],
        ["update usage_now set held[3] = held[3] + 1 where subject_id = any ($1)", 17],
        ["update usage_now set running = running + 1 where subject_id = any ($1)", 19],
        ["delete from usage_past where kind = 'session' and subject_id = any ($1)", 23],
        ["delete from usage_now where subject_id = any ($1)", 29],
      ];
      for (const [text, step] of harms) await store.db.query(text, [some(step)]);
      const whole = ordered(await differencesIn(store.db, "usage_differences($1)", ["sealed"]));
      expect(whole.length).toBeGreaterThan(30);
      expect(ordered(await book.check())).toEqual(whole);
      const anew = (await book.check(true)).filter(({ kind }) => kind !== "day" && kind !== "hour");
      expect(ordered(anew)).toEqual(whole);
    });
  });
}
