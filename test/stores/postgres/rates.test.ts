// Sliding rates in the database, beyond the contract of all stores (test/core/store/rates.test.ts): what was counted elsewhere
// is read from the ledger.

import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { noBudget } from "../../../src/core/store/budget.ts";
import { bare, idOf } from "../../../src/core/store/ids.ts";
import type { Ledger } from "../../../src/core/store/ledger.ts";
import type { RateLimits, RateSubject, Rates } from "../../../src/core/store/rates.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { postgresRates } from "../../../src/stores/postgres/rates.ts";
import { admitOf, newHex, newRequestId, type Store, settleOf, stores } from "../../core/store/ledger-stores.ts";
import { house, limitModels, whose } from "../../core/store/model-limits.ts";
import { ofOrganization } from "../../core/store/rates-stores.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { setSubject } from "../../harness/limits.ts";

setDefaultTimeout(60_000);

const uuidIn = (id: string) => bare(id, id.startsWith("key_") ? "key_" : "team_");
const newId = (of: "key" | "team") => `${of}_${newHex()}`;

for (const kind of databaseKinds(import.meta.path)) {
  describe(kind, () => {
    let store: Store;
    let book: Ledger;
    let rates: Rates;
    let now_ms: number;
    beforeAll(async () => {
      store = await stores[kind]();
      book = ledger(store.db, { recovery: "checkpoint" });
      rates = postgresRates(store.db, { answer_ms: 20_000 });
    });
    // Ids sort by the time at which they were made: the ledger is read by them.
    beforeEach(() => {
      now_ms = Date.now();
      return store.setClock(new Date(now_ms));
    });
    afterAll(async () => {
      await book.close();
      await store.close();
    });

    const advance = (ms: number) => {
      now_ms += ms;
      return store.setClock(new Date(now_ms));
    };
    const take = (organizationId: string, limits: RateLimits, elsewhere_ms?: number) =>
      rates.take({
        organizationId,
        requestId: newRequestId(),
        tokens: 1,
        tokens_min: 1,
        subjects: ofOrganization(organizationId, limits),
        ...(elsewhere_ms === undefined ? {} : { elsewhere_ms }),
      });

    for (const [how, limits] of [
      ["one by one", { requestsPerMinute: 10, tokensPerMinute: 5_000_000 }],
      ["by seconds", { requestsPerMinute: 10_000, tokensPerMinute: 5_000_000 }],
    ] as const) {
      test(`requests that were counted elsewhere are read from the ledger, running and ended, counted ${how}`, async () => {
        const organizationId = await store.newOrganization();
        const other = await store.newOrganization();
        const old = admitOf(organizationId);
        await book.run([old, admitOf(other)]);
        await advance(30_000);
        const [running, ended] = [admitOf(organizationId), admitOf(organizationId)];
        await book.run([running, ended]);
        const usage = { ...noUsage, inputTokens: 300, cachedInputTokens: 20, outputTokens: 80 };
        await book.run([settleOf(ended, 10, { usage })]);
        // Given up before it was admitted: it never ran.
        await book.run([settleOf({ ...admitOf(organizationId), requestId: newRequestId() }, 0)]);
        await advance(31_000);

        const answer = await take(organizationId, limits, 1_000);
        // Two and this one; of the running one its step of 90 tokens and the input that it holds.
        expect(answer).toMatchObject({
          answer: "taken",
          readings: {
            requests: { remaining: limits.requestsPerMinute - 3 },
            tokens: { remaining: 5_000_000 - 400 - (90 + 50) - 1 },
          },
        });
        // Read once: until something was counted elsewhere again, nothing is counted twice.
        await book.run([admitOf(organizationId)]);
        await advance(1_000);
        expect(await take(organizationId, limits, 2_000)).toMatchObject({
          readings: { requests: { remaining: limits.requestsPerMinute - 4 } },
        });
        await advance(30_000);
        expect(await take(organizationId, limits)).toMatchObject({
          readings: { requests: { remaining: limits.requestsPerMinute - 3 } },
        });
      });

      test(`an operator's entry in the book is no request, whichever window it adjusts, counted ${how}`, async () => {
        const organizationId = await store.newOrganization();
        await book.run([admitOf(organizationId)]);
        for (const window of ["session", "week", "month", "extra"] as const)
          expect(await book.adjust(newRequestId(), organizationId, window, 500)).toBe(500);
        expect(await take(organizationId, limits, 0)).toMatchObject({
          readings: { requests: { remaining: limits.requestsPerMinute - 2 } },
        });
      });
    }

    test("of a key and a team those are read that were theirs, whichever team the key is in by now", async () => {
      const organizationId = await store.newOrganization();
      const [key, other, team] = [newId("key"), newId("key"), newId("team")];
      const put = (id: string, into: string | null) =>
        store.db.transaction((tx) =>
          setSubject(tx, {
            ...{ id: uuidIn(id), organization: bare(organizationId, "org_"), budget: noBudget },
            team: into && uuidIn(into),
          }),
        );
      await put(team, null);
      for (const one of [key, other]) await put(one, team);
      await book.run([
        admitOf(organizationId, { keyId: key }),
        admitOf(organizationId, { keyId: key }),
        admitOf(organizationId, { keyId: other }),
        admitOf(organizationId, { keyId: newId("key") }),
      ]);
      await put(key, null);
      await book.run([admitOf(organizationId, { keyId: key })]);
      await advance(1_000);
      const limits = { requestsPerMinute: 100, tokensPerMinute: null };
      const subjects: RateSubject[] = [
        { limitedBy: "key", id: key, limits },
        { limitedBy: "team", id: team, limits },
        ...ofOrganization(organizationId, limits),
      ];
      const asked = { organizationId, requestId: newRequestId(), tokens: 1, tokens_min: 1, elsewhere_ms: 0, subjects };
      expect((await rates.take(asked)).answer).toBe("taken");
      const left = (await rates.read(organizationId, subjects)).map(({ requests }) => requests!.remaining);
      expect(left).toEqual([100 - 4, 100 - 4, 100 - 6]);
    });

    test.each(whose)("of a limit for models of the %s those are read that it counts, of all keys", async (one) => {
      const { organization: organizationId, key: keyId, ids } = await house(store);
      const id = await limitModels(store.db, ids.organization, ids[one], "acme/*", {});
      await book.run([
        ...["acme/large", "acme/small", "plain"].map((model) => admitOf(organizationId, { keyId, model })),
        admitOf(organizationId, { keyId: newId("key"), model: "acme/large" }),
      ]);
      await advance(1_000);
      const limits = { requestsPerMinute: 100, tokensPerMinute: null };
      const subjects: RateSubject[] = [{ limitedBy: one, models: "acme/*", id: idOf(id, "lim_"), limits }];
      const asked = { organizationId, requestId: newRequestId(), tokens: 1, tokens_min: 1, elsewhere_ms: 0, subjects };
      expect((await rates.take(asked)).answer).toBe("taken");
      const left = (await rates.read(organizationId, subjects)).map(({ requests }) => requests!.remaining);
      expect(left).toEqual([100 - (one === "organization" ? 4 : 3)]);
    });

    test("of a person those are read that were of any of the person's keys", async () => {
      const { organization: organizationId, key: keyId, ids } = await house(store);
      await book.run([admitOf(organizationId, { keyId }), admitOf(organizationId, { keyId: newId("key") })]);
      await advance(1_000);
      const limits = { requestsPerMinute: 100, tokensPerMinute: null };
      const subjects: RateSubject[] = [{ limitedBy: "person", id: idOf(ids.person, "mem_"), limits }];
      const asked = { organizationId, requestId: newRequestId(), tokens: 1, tokens_min: 1, elsewhere_ms: 0, subjects };
      expect((await rates.take(asked)).answer).toBe("taken");
      expect((await rates.read(organizationId, subjects))[0]!.requests!.remaining).toBe(100 - 2);
    });

    test("a request that asks with an id that is none is refused alone", async () => {
      const organizationId = await store.newOrganization();
      const limits = { requestsPerMinute: 5, tokensPerMinute: null };
      const [bad, good] = await Promise.allSettled([take("org_nobody", limits), take(organizationId, limits)]);
      expect([bad.status, good.status]).toEqual(["rejected", "fulfilled"]);
    });
  });
}
