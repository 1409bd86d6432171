/**
 * Receipts of refused requests are stored after the answers are sent. Their number is bounded, no answer waits for
 * them, and each is found at once.
 */
import { expect, test } from "bun:test";
import type { NewRefused, RefusedRequest, RefusedRequests } from "../../../src/core/store/refused.ts";
import { type RefusedSettings, refusedLog } from "../../../src/core/usage/refused.ts";
import { until } from "../../harness/until.ts";

let made = 0;
const refusedBy = (organizationId: string) => ({
  requestId: `req_${++made}`,
  organizationId,
  keyId: "key_1",
  operation: "chat.completions" as const,
  model: null,
  stream: false,
  errorCode: "rate_limit_exceeded",
  message: "The key laptop's limit is reached.",
});

function memoryStore() {
  const kept = new Map<string, NewRefused>();
  const store: RefusedRequests & { away: boolean; writes: number } = {
    away: false,
    writes: 0,
    async keep(requests) {
      store.writes++;
      if (store.away) throw new Error("the store is away");
      for (const one of requests) kept.set(one.requestId, one);
    },
    async find(requestId): Promise<RefusedRequest | null> {
      const found = kept.get(requestId);
      return found ? { ...found, personId: null, refusedAt: new Date(0) } : null;
    },
    personOf: async () => "per_1",
    forget: async () => false,
  };
  return { kept, store };
}

function logOver(store: RefusedRequests, settings: Partial<RefusedSettings> = {}) {
  let now_ms = 5_000;
  const failures: unknown[] = [];
  const log = refusedLog({
    store,
    now_ms: () => now_ms,
    failed: (cause) => failures.push(cause),
    settings: { write_ms: 5, retry_ms: 5, ...settings },
  });
  return {
    log,
    failures,
    pass(ms: number) {
      now_ms += ms;
    },
  };
}

test("one is found before it is written, and after", async () => {
  const { kept, store } = memoryStore();
  const { log, pass } = logOver(store);
  const one = refusedBy("org_a");
  log.add(one);
  pass(40);
  expect(kept.size).toBe(0);
  const found = await log.find(one.requestId);
  expect(found).toMatchObject(one);
  expect(Math.abs((found?.refusedAt.getTime() ?? 0) - (Date.now() - 40))).toBeLessThan(1_000);
  await until(() => kept.size === 1, 2_000, "the write");
  expect(kept.get(one.requestId)?.age_ms).toBe(40);
  expect((await log.find(one.requestId))?.refusedAt).toEqual(new Date(0));
  expect(await log.find("req_none")).toBeNull();
  await log.stop();
});

test("of an organization that is refused without end ten a second are remembered, and others lose nothing by it", async () => {
  const { kept, store } = memoryStore();
  const { log, pass } = logOver(store);
  for (let i = 0; i < 500; i++) log.add(refusedBy("org_a"));
  log.add(refusedBy("org_b"));
  pass(1_000);
  log.add(refusedBy("org_a"));
  await log.stop();
  expect(kept.size).toBe(12);
});

test("a store that is away costs nothing but time: what waits is bounded, and written when it is back", async () => {
  const { kept, store } = memoryStore();
  const { log, failures } = logOver(store, { waiting_max: 30 });
  store.away = true;
  for (let i = 0; i < 100; i++) log.add(refusedBy(`org_${i}`));
  await until(() => failures.length >= 2, 2_000, "two attempts");
  store.away = false;
  await until(() => kept.size === 30, 2_000, "the write");
  await log.stop();
  expect(failures.length).toBe(store.writes - 1);
});

test("stopping writes what is left, and never rejects", async () => {
  const { kept, store } = memoryStore();
  const one = logOver(store, { write_ms: 60_000 });
  one.log.add(refusedBy("org_a"));
  await one.log.stop();
  expect(kept.size).toBe(1);
  store.away = true;
  const other = logOver(store, { write_ms: 60_000 });
  other.log.add(refusedBy("org_a"));
  await other.log.stop();
  expect(other.failures).toHaveLength(1);
});

test("what need be kept no longer is forgotten bit by bit, until nothing is left to forget", async () => {
  const { store } = memoryStore();
  let left = 3;
  store.forget = async () => --left > 0;
  const { log } = logOver(store, { forget_ms: 5 });
  await until(() => left <= 0, 2_000, "the last bit");
  await log.stop();
});
