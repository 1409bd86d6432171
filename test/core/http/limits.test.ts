/** What a plan limits, as clients see it: rates, concurrency and windows, and what a refusal tells. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { eventsOf, model, says, startService, words } from "../../harness/engine.ts";
import { newMember } from "../../harness/organizations.ts";
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
    // Listing models is not inference, so it is not limited.
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
    // A request without a cap takes all that is left.
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
