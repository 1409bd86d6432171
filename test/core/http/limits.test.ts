/**
 * Limits of a plan as clients see them: rates and concurrency, and the contents of a refusal. A request that needs more
 * than a whole limit can never pass: in every protocol its refusal is final, names the limit, its owner, its size and
 * what the request needed, and nothing in it makes a client wait. docs/design/errors-and-streams.md, Limits and their
 * errors.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { inWords, type Money } from "../../../src/core/inference/money.ts";
import { eventsOf, model, says, startService, words } from "../../harness/engine.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
import { newKey, newMember, newOrganization } from "../../harness/organizations.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const plans = {
  three: "{ requests_per_minute: 3 }",
  single: "{ requests_per_minute: 3, concurrent_requests: 1 }",
  wide: "{ session: 100000000 }",
  minute: "{ tokens_per_minute: 1000 }",
  session: "{ session: 100000 }",
};

const service = await startService({ plans });
afterAll(() => service.stop());

const keyOn = async (plan: keyof typeof plans, ...options: string[]) =>
  (await newMember(service, plan, ...options)).key;

const chat = (key: string, body: object, signal?: AbortSignal) =>
  service.post(
    "/v1/chat/completions",
    { model, max_tokens: 10, messages: says("", "hello"), ...body },
    { key, ...(signal && { signal }) },
  );
const counted = async (key: string) =>
  (await service.post("/v1/messages/count_tokens", { model, messages: says("", "hello") }, { key })).status;
// biome-ignore lint/suspicious/noExplicitAny: answers are held against the contract by the harness
const errorIn = async (response: Response): Promise<any> => ((await response.json()) as any).error;
const limitHeadersOf = (response: Response, what: string) =>
  ["limit", "remaining", "reset"].map((name) => response.headers.get(`x-ratelimit-${name}-${what}`));

describe("requests a minute", () => {
  test("so many run, the next is told when to come back, and no engine is asked", async () => {
    const key = await keyOn("three");
    expect(await counted(key)).toBe(200);
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
    // Listing models and counting tokens are not inference, so they are not limited.
    expect((await service.fetch("/v1/models", { key })).status).toBe(200);
    expect(await counted(key)).toBe(200);
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
      expect(response.headers.get("anthropic-ratelimit-unified-status")).toBeNull();
    }
  });

  test("where a plan limits nothing there are no such headers", async () => {
    const response = await service.post("/v1/chat/completions", { model, messages: says("", "hello") });
    expect([...response.headers.keys()].filter((name) => name.includes("ratelimit"))).toEqual([]);
  });
});

test("tokens a minute are taken by what a request may come to, and corrected when it is known", async () => {
  const key = await keyOn("minute");
  for (let i = 0; i < 3; i++) {
    const response = await chat(key, { max_tokens: 800 });
    expect(response.status).toBe(200);
    expect(limitHeadersOf(response, "tokens")).toEqual(["1000", expect.stringMatching(/^\d{1,3}$/), "1m0s"]);
    await response.text();
  }
  // A request without a cap on its output takes all tokens that are left.
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

test("concurrent requests: one more than allowed is refused, and takes nothing of the minute", async () => {
  const key = await keyOn("single");
  const leave = new AbortController();
  const long = { messages: says("tps=20", words(500)), max_tokens: 500, stream: true };
  const running = await chat(key, long, leave.signal);
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

// A request of 2,000 words and 10 tokens of output holds at least 200,000 nanos: 100 a token of input, 400 of output.
const text = words(2_000);

async function keyOfTeam(limit: string): Promise<string> {
  const org = await newOrganization(service, "wide");
  await service.json("team", "create", "--org", org, "--name", "research", "--limit", limit);
  return (await newKey(service, org, "--team", "research")).key;
}

/** By protocol: the path, the body, and the type of the error. */
const protocols = {
  chat: {
    path: "/v1/chat/completions",
    body: (said: string) => ({ model, max_tokens: 10, messages: [{ role: "user", content: said }] }),
    type: "usage_limit_error",
  },
  responses: {
    path: "/v1/responses",
    body: (said: string) => ({ model, max_output_tokens: 16, input: said }),
    type: "usage_limit_reached",
  },
  messages: {
    path: "/v1/messages",
    body: (said: string) => ({ model, max_tokens: 10, messages: [{ role: "user", content: said }] }),
    type: "rate_limit_error",
  },
};
type Name = keyof typeof protocols;

const ask = (name: Name, key: string, said = text, stream = false) =>
  service.post(protocols[name].path, { ...protocols[name].body(said), stream }, { key });

interface Said {
  type: string;
  message: string;
  fields: Record<string, unknown>;
}
async function saidBy(response: Response): Promise<Said> {
  const { error } = (await response.json()) as {
    error: { type: string; message: string; details?: Record<string, unknown> };
  };
  const { type, message, details, ...rest } = error;
  return { type, message, fields: details ?? rest };
}

const limits: [string, string, string, () => Promise<string>][] = [
  ["organization", "session", "$0.0001 for this session of five hours", async () => keyOn("session")],
  ["team", "tokens_per_minute", "limit of 1,000 tokens a minute", () => keyOfTeam("tokens_per_minute=1000")],
  ["key", "month", "$0.0001 for this month", async () => keyOn("wide", "--limit", "month=0.0001")],
];

describe.each(limits)("above the %s's %s", (limited_by, limit, named, keyWith) => {
  let key: string;
  beforeAll(async () => {
    key = await keyWith();
  });

  test.each(Object.keys(protocols) as Name[])("a refusal by %s is final and says why", async (name) => {
    const before = service.engine.counts.requests;
    for (const stream of [false, true]) {
      const response = await ask(name, key, text, stream);
      expect(response.status).toBe(429);
      expect(response.headers.get("x-should-retry")).toBe("false");
      const waits = [...response.headers.keys()].filter((header) => /reset|retry-after/.test(header));
      expect(waits).toEqual([]);
      const { type, message, fields } = await saidBy(response);
      expect(type).toBe(protocols[name].type);
      const isMinute = limit === "tokens_per_minute";
      const limit_value = isMinute ? 1_000 : dollars(100_000);
      expect(fields).toMatchObject({ limit, limit_value, limited_by });
      expect(fields.code ?? fields.error_code).toBe("usage_limit_reached");
      expect(Object.keys(fields).filter((field) => /reset|window/.test(field))).toEqual([]);
      const needed = fields.needed as Money & number;
      expect(isMinute ? needed : nanosOf(needed)).toBeGreaterThan(isMinute ? 1_000 : 100_000);
      const asked = isMinute ? `${needed.toLocaleString("en-US")} tokens` : inWords(needed);
      const whose = `the ${limited_by}(?: [^']+)?'s whole ${named.replace("$", "\\$")}`;
      expect(message).toMatch(
        new RegExp(
          `^This request needs at least ${asked.replace("$", "\\$")}, more than ${whose}\\. Send less input, `,
        ),
      );
      expect(message).toContain("ask your administrator");
      const status = response.headers.get("anthropic-ratelimit-unified-status");
      expect(status).toBe(name === "messages" ? "rejected" : null);
      const forCodex = response.headers.get("x-codex-promo-message");
      expect(forCodex).toBe(name === "responses" ? message.slice(0, -1) : null);
    }
    expect(service.engine.counts.requests).toBe(before);
    expect((await ask(name, key, "hello")).status).toBe(200);
  });
});

test("a refusal names what has letters that a header cannot have", async () => {
  const org = await newOrganization(service, "wide");
  const { key } = await newKey(service, org, "--name", "Žižkov 研究", "--limit", "month=0.00005");
  const response = await ask("responses", key);
  expect(response.status).toBe(429);
  expect((await saidBy(response)).message).toContain("the key Žižkov 研究's");
  expect(response.headers.get("x-codex-promo-message")).toContain("the key Zizkov ??'s");
});
