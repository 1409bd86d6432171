/**
 * Engines at their limit: which requests wait, which engine gets them, what the client sees during the wait, and that
 * the wait costs nothing. Over real sockets.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { dollars } from "../harness/money.ts";
import { endedReceipt } from "../harness/receipts.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { bodyOf, seen } from "./callers.ts";
import { configOf } from "./config.ts";
import { type Engine, startEngine, words } from "./engine.ts";

const engines: Engine[] = Array.from({ length: 5 }, startEngine);
const [one, pair, other, short, beating] = engines as [Engine, Engine, Engine, Engine, Engine];
let sluice: Sluice;

beforeAll(async () => {
  const limited = ({ url }: Engine, length_max = 100, wait_ms_max = 30_000) => ({
    ...{ url, concurrent_max: 1, queue: { length_max, wait_ms_max } },
  });
  const upstreams = {
    "canary-one": limited(one),
    "canary-pair": limited(pair),
    "canary-other": limited(other),
    "canary-short": limited(short, 4, 2_000),
    "canary-beating": limited(beating),
  };
  const models = {
    one: ["canary-one"],
    pair: ["canary-pair", "canary-other"],
    short: ["canary-short"],
    beating: ["canary-beating"],
  };
  sluice = await startSluice({
    config: configOf(upstreams, models, {
      limits: { first_event_hold_ms: 50, heartbeat_ms: 100 },
      metering: { currency: "USD", lease_s: 3, checkpoint_s: 0.5 },
    }),
    operatorsWords: Object.keys(upstreams),
  });
}, 60_000);
afterAll(async () => {
  await sluice.stop();
  await Promise.all(engines.map((engine) => engine.stop()));
});

const asks = (model: string, init: RequestInit = {}, stream = true) =>
  sluice.post("/v1/chat/completions", bodyOf("chat", `acme/${model}`, stream), init);

async function metric(line: RegExp): Promise<number> {
  return Number(line.exec(await (await sluice.fetch("/metrics")).text())?.[1] ?? 0);
}
const waitingFor = (model: string) =>
  metric(new RegExp(`^upstream_queue_length\\{model="acme/${model}".*\\} (\\d+)`, "m"));

test("an engine is never asked for more than its limit at once, and all are answered", async () => {
  const answers = await Promise.all(Array.from({ length: 12 }, async () => seen(await asks("one"))));
  expect(answers.map(({ code, text }) => code ?? text)).toEqual(Array(12).fill(words));
  expect(one.most).toBe(1);
  expect(one.asked).toHaveLength(12);
  expect(await metric(/^upstream_queue_wait_seconds_count\{model="acme\/one",outcome="served"\} (\d+)/m)).toBe(11);
});

// The other tests run concurrently: each has engines of its own, and mostly waits for these.
test.concurrent("who leaves while waiting gives the place up at once, is charged nothing, and no engine hears of it", async () => {
  one.delay_ms = 20_000;
  const before = one.asked.length;
  const running = asks("one");
  await until(() => one.asked.length === before + 1, 10_000, "the first to be asked");
  const leaving = new AbortController();
  const left = await asks("one", { signal: leaving.signal });
  await until(async () => (await waitingFor("one")) === 1, 10_000, "it to wait");
  leaving.abort();
  await until(async () => (await waitingFor("one")) === 0, 10_000, "its place to be free");
  expect(one.inFlight, "requests that still run, whose end would have freed the place, too").toBe(1);
  const receipt = await endedReceipt(sluice, left.headers.get("x-service-request-id")!);
  expect(receipt).toMatchObject({ outcome: "cancelled", cost: { charged: dollars(0) }, usage: { input_tokens: 0 } });
  one.hurry();
  expect((await seen(await running)).text).toBe(words);
  expect(one.asked).toHaveLength(before + 1);
  one.delay_ms = 20;
  expect((await seen(await asks("one"))).text).toBe(words);
}, 30_000);

test.concurrent("a request waits for all of its engines, and goes to the one that has room first", async () => {
  pair.delay_ms = 20_000;
  other.delay_ms = 20_000;
  const first = [asks("pair"), asks("pair")];
  await until(() => pair.inFlight === 1 && other.inFlight === 1, 10_000, "both to be full");
  const waiting = asks("pair");
  await until(async () => (await waitingFor("pair")) >= 1, 10_000, "the third to wait");
  other.delay_ms = 20;
  other.hurry();
  // The request that waits for both engines goes to the engine with a free slot, while the other one is still busy.
  expect((await seen(await waiting)).text).toBe(words);
  expect([pair.inFlight, other.asked.length]).toEqual([1, 2]);
  pair.hurry();
  await Promise.all(first.map(async (one) => seen(await one)));
  expect([pair.most, other.most]).toEqual([1, 1]);
}, 30_000);

test.concurrent("too many that wait, and too long a wait, are 429 capacity_exceeded with a time to come back", async () => {
  short.delay_ms = 20_000;
  const running = asks("short");
  await until(() => short.inFlight === 1, 10_000, "it to be full");
  // These requests are not streamed, so that the status is not sent before the wait ends.
  const waiting = Array.from({ length: 2 }, async () => seen(await asks("short", {}, false)));
  await until(async () => (await waitingFor("short")) === 2, 10_000, "two to wait");
  const refused = await seen(await asks("short", {}, false));
  expect(refused).toMatchObject({
    status: 429,
    code: "capacity_exceeded",
    retryAfter: expect.stringMatching(/^[1-9]$/),
  });
  for (const one of await Promise.all(waiting)) {
    expect(one).toMatchObject({ status: 429, code: "capacity_exceeded", retryAfter: expect.stringMatching(/^\d+$/) });
    const receipt = await endedReceipt(sluice, one.requestId);
    expect(receipt).toMatchObject({
      outcome: "failed",
      error_code: "capacity_exceeded",
      cost: { charged: dollars(0) },
    });
  }
  short.hurry();
  expect((await seen(await running)).text).toBe(words);
  expect(short.asked).toHaveLength(1);
  expect(await metric(/^upstream_queue_wait_seconds_count\{model="acme\/short",outcome="full"\} (\d+)/m)).toBe(3);
}, 30_000);

test.concurrent("a wait longer than the lease keeps it, and has heartbeats", async () => {
  beating.delay_ms = 4_500;
  const running = asks("beating");
  await until(() => beating.inFlight === 1, 10_000, "it to be full");
  const response = await asks("beating");
  const text = await response.text();
  expect(text.match(/^: /gm)?.length ?? 0).toBeGreaterThanOrEqual(5);
  expect(text).toContain(words);
  expect((await seen(await running)).text).toBe(words);
  const receipt = await endedReceipt(sluice, response.headers.get("x-service-request-id")!);
  expect(receipt).toMatchObject({ outcome: "completed", recovered: false });
}, 30_000);
