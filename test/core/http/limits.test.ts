/** What a plan limits, as clients see it: rates, concurrency and windows, and what a refusal tells. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { moment } from "../../../src/core/time/written.ts";
import { eventsOf, model, says, startService, words } from "../../harness/engine.ts";
import { dollars } from "../../harness/money.ts";
import { newMember } from "../../harness/organizations.ts";
import { startRedis } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const plans = {
  three: "{ requests_per_minute: 3 }",
  tokens: "{ tokens_per_minute: 1000 }",
  single: "{ requests_per_minute: 3, concurrent_requests: 1 }",
  // A request of 10 output tokens holds some 10,000 nanos, and costs less.
  small: "{ session: 14000, requests_per_minute: 100 }",
};

const service = await startService({ plans });
afterAll(() => service.stop());

const keyOn = async (plan: keyof typeof plans, on = service) => (await newMember(on, plan)).key;

const chat = (key: string, body: object, on = service, signal?: AbortSignal) =>
  on.post(
    "/v1/chat/completions",
    { model, max_tokens: 10, messages: says("", "hello"), ...body },
    { key, ...(signal && { signal }) },
  );
// biome-ignore lint/suspicious/noExplicitAny: answers are held against the contract by the harness
const errorIn = async (response: Response): Promise<any> => ((await response.json()) as any).error;
const limitHeadersOf = (response: Response, what: string) =>
  ["limit", "remaining", "reset"].map((name) => response.headers.get(`x-ratelimit-${name}-${what}`));

describe("requests a minute", () => {
  test("so many run, the next is told when to come back, and no engine is asked", async () => {
    const key = await keyOn("three");
    for (const remaining of ["2", "1", "0"]) {
      const response = await chat(key, {});
      expect(response.status).toBe(200);
      expect(limitHeadersOf(response, "requests")).toEqual(["3", remaining, "1m0s"]);
      expect(limitHeadersOf(response, "tokens")).toEqual([null, null, null]);
    }
    const asked = service.engine.counts.requests;
    for (const stream of [false, true]) {
      const response = await chat(key, { stream });
      expect(response.status).toBe(429);
      expect(await errorIn(response)).toMatchObject({
        type: "rate_limit_error",
        code: "rate_limit_exceeded",
        message: expect.stringContaining("3 requests a minute"),
      });
      const seconds = Number(response.headers.get("retry-after"));
      expect(Number.isInteger(seconds) && seconds > 30 && seconds <= 60).toBe(true);
      expect(response.headers.get("x-should-retry")).toBeNull();
      expect(limitHeadersOf(response, "requests")).toEqual(["3", "0", expect.stringMatching(/^(5\d(\.\d+)?s|1m0s)$/)]);
    }
    expect(service.engine.counts.requests).toBe(asked);
    // Reading is not inference.
    expect((await service.fetch("/v1/models", { key })).status).toBe(200);
  });

  test("a stream carries the headers as well, and Messages its own family", async () => {
    const key = await keyOn("three");
    const stream = await chat(key, { stream: true });
    expect(limitHeadersOf(stream, "requests")).toEqual(["3", "2", "1m0s"]);
    await eventsOf(stream);
    const messages = { model, max_tokens: 10, messages: says("", "hello") };
    for (const [status, remaining] of [
      [200, "1"],
      [200, "0"],
      [429, "0"],
    ] as const) {
      const response = await service.post("/v1/messages", messages, { key });
      expect(response.status).toBe(status);
      expect(response.headers.get("anthropic-ratelimit-requests-limit")).toBe("3");
      expect(response.headers.get("anthropic-ratelimit-requests-remaining")).toBe(remaining);
      const resetsIn_ms = Date.parse(response.headers.get("anthropic-ratelimit-requests-reset") ?? "") - Date.now();
      expect(resetsIn_ms > 30_000 && resetsIn_ms <= 60_000).toBe(true);
      expect(limitHeadersOf(response, "requests")).toEqual([null, null, null]);
    }
  });

  test("where a plan limits nothing there are no such headers", async () => {
    const response = await service.post("/v1/chat/completions", { model, messages: says("", "hello") });
    expect([...response.headers.keys()].filter((name) => name.includes("ratelimit"))).toEqual([]);
  });
});

describe("tokens a minute", () => {
  test("are taken by what a request may come to, and corrected when it is known", async () => {
    const key = await keyOn("tokens");
    for (let i = 0; i < 3; i++) {
      const response = await chat(key, { max_tokens: 800 });
      expect(response.status).toBe(200);
      expect(limitHeadersOf(response, "tokens")).toEqual(["1000", expect.stringMatching(/^\d{1,3}$/), "1m0s"]);
      await response.text();
    }
    // Without a cap a request begins with what is left.
    const open = await chat(key, { max_tokens: undefined });
    expect(limitHeadersOf(open, "tokens")[1]).toBe("0");
    await open.text();
    await (await chat(key, { messages: says("", words(350)), max_tokens: 200 })).text();
    const full = await chat(key, { messages: says("", words(100)), max_tokens: 700 });
    expect(full.status).toBe(429);
    expect(await errorIn(full)).toMatchObject({
      code: "rate_limit_exceeded",
      message: expect.stringContaining("1,000 tokens a minute"),
    });
    expect(full.headers.get("x-should-retry")).toBeNull();
  });

  test("a request above the whole limit is told that waiting does not help, and why", async () => {
    const key = await keyOn("tokens");
    const response = await chat(key, { messages: says("", words(1_000)) });
    expect(response.status).toBe(429);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(response.headers.get("retry-after")).toBeNull();
    expect(limitHeadersOf(response, "tokens")).toEqual([null, null, null]);
    const error = await errorIn(response);
    expect(error).toMatchObject({
      code: "usage_limit_reached",
      limit: "tokens_per_minute",
      limit_value: 1_000,
      limited_by: "organization",
    });
    const needed = error.needed as number;
    expect(needed).toBeGreaterThan(1_000);
    expect(error.message).toMatch(
      new RegExp(
        `needs at least ${needed.toLocaleString("en-US")} tokens, more than the organization \\S+'s whole limit of 1,000 tokens`,
      ),
    );
    expect((await chat(key, {})).status).toBe(200);
  });
});

test("concurrent requests: one more than allowed is refused, and takes nothing of the minute", async () => {
  const key = await keyOn("single");
  const leave = new AbortController();
  const long = { messages: says("tps=20", words(500)), max_tokens: 500, stream: true };
  const running = await chat(key, long, service, leave.signal);
  expect(running.status).toBe(200);
  for (let i = 0; i < 4; i++) {
    const refused = await chat(key, {});
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await errorIn(refused)).toMatchObject({ code: "concurrency_limit_exceeded", type: "rate_limit_error" });
  }
  leave.abort();
  const statuses: number[] = [];
  await until(
    async () => {
      const response = await chat(key, {});
      if (response.status === 200) statuses.push(response.status);
      return statuses.length === 2;
    },
    10_000,
    "room for two more",
  );
  expect(await errorIn(await chat(key, {}))).toMatchObject({ code: "rate_limit_exceeded" });
});

test("a session with too little left: 429 with everything that a client needs to wait or to ask", async () => {
  const key = await keyOn("small");
  const before = Date.now();
  expect((await chat(key, { messages: says("", words(10)) })).status).toBe(200);
  let response = await chat(key, {});
  await until(
    async () => {
      response = await chat(key, {});
      return response.status === 429 && response.headers.get("retry-after") !== "1";
    },
    10_000,
    "the session to be full of settled use",
  );
  const hours_ms = 5 * 3_600_000;
  const error = await errorIn(response);
  const reset_ms = Date.parse(error.reset_at);
  expect(reset_ms).toBeGreaterThanOrEqual(before + hours_ms - 1000);
  expect(reset_ms).toBeLessThanOrEqual(Date.now() + hours_ms);
  expect(error).toEqual({
    message: expect.stringContaining(`starts anew on ${moment(new Date(reset_ms))}`),
    type: "usage_limit_error",
    param: null,
    code: "usage_limit_reached",
    request_id: response.headers.get("x-service-request-id"),
    window: "session",
    reset_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    resets_at: Math.ceil(reset_ms / 1000),
    resets_in_seconds: expect.any(Number),
    limited_by: "organization",
    extra_usage: { enabled: false, available: dollars(0) },
    plan_type: "small",
  });
  expect(error.resets_in_seconds).toBeWithin(hours_ms / 1000 - 60, hours_ms / 1000 + 1);
  expect(response.headers.get("retry-after")).toBeNull();
  expect(response.headers.get("x-should-retry")).toBe("false");
  expect(response.headers.get("x-service-usage-session-reset-at")).toBe(error.reset_at);
  expect(Number(response.headers.get("x-service-usage-session-percent"))).toBeGreaterThan(20);
  const messages = await service.post("/v1/messages", { model, max_tokens: 10, messages: says("", "hello") }, { key });
  expect(messages.headers.get("anthropic-ratelimit-unified-status")).toBe("rejected");
});

test("with Redis up, then gone, then back and empty: three requests a minute, and at the change as often again", async () => {
  const redis = await startRedis();
  const port = Number(new URL(redis.url).port);
  const fleet = await startService({ plans, sluice: { store: "postgres", env: { REDIS_URL: redis.url } } });
  let stop = redis.stop;
  try {
    const key = await keyOn("three", fleet);
    const ask = async () => (await chat(key, {}, fleet)).status;
    expect([await ask(), await ask()]).toEqual([200, 200]);
    await redis.stop();
    expect([await ask(), await ask(), await ask(), await ask()]).toEqual([200, 200, 200, 429]);
    expect((await fleet.fetch("/readyz", { key: null })).status).toBe(200);
    stop = (await startRedis(port)).stop;
    await until(
      async () => {
        expect(await ask()).toBe(429);
        return fleet.stderr().includes("rates_counted_in_redis");
      },
      20_000,
      "Redis to count again",
    );
    expect(await ask()).toBe(429);
    expect(fleet.stderr().match(/rates_counted_in_shares/g)).toHaveLength(1);
  } finally {
    await fleet.stop();
    await stop();
  }
});
