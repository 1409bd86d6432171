/**
 * Limits of a key and its team, for all models or some, as a client and an operator see them: errors, receipts, usage,
 * and limits that change while a request runs.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Money } from "../../../src/core/inference/money.ts";
import { model, plainModel, says, startService, words } from "../../harness/engine.ts";
import { dollars } from "../../harness/money.ts";
import { newKey, newOrganization } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

// A short request that asks for 256 tokens holds some 110,000 nanos: 100 a token of input, 400 of output.
const plans = {
  wide: "{ session: 100000000, week: 200000000, concurrent_requests: 50 }",
  minute: "{ requests_per_minute: 50, tokens_per_minute: 5000 }",
};

const service = await startService({
  plans,
  engine: { directives: "", namesModel: false },
});
afterAll(() => service.stop(), 60_000);

const organization = (plan: keyof typeof plans = "wide") => newOrganization(service, plan);
interface Refused {
  error: Record<string, unknown> & { code: string; message: string };
}
const chat = (key: string, content: string, max_tokens = 256, more: object = {}) =>
  service.post("/v1/chat/completions", { model, messages: says("", content), max_tokens, ...more }, { key });
/** Begins a slow stream, which counts as a running request until `leave` is called. */
async function begun(key: string): Promise<{ leave(): void }> {
  const running = new AbortController();
  const body = { model, messages: says("tps=1", words(3)), max_tokens: 256, stream: true };
  const { status } = await service.post("/v1/chat/completions", body, { key, signal: running.signal });
  expect(status).toBe(200);
  return { leave: () => running.abort() };
}
const nothingRuns = (org: string) =>
  until(async () => (await service.json<{ running_requests: number }>("usage", "show", org)).running_requests === 0);
const newTeam = (org: string, limit: string) =>
  service.json<{ id: string }>("team", "create", "--org", org, "--name", "research", "--limit", limit);
const usageOf = async (key: string) =>
  (await (await service.fetch("/v1/service/usage", { key })).json()) as Record<string, Record<string, unknown>>;

async function refused(response: Response): Promise<Refused["error"]> {
  expect(response.status).toBe(429);
  return ((await response.json()) as Refused).error;
}

interface Shown {
  standing: { usage_percent: number; week: { used: Money; held: Money; limit: Money } };
}

/** A refusal as operators read it, once it is stored; it is stored after its answer was sent. */
async function storedRefusal({ request_id }: Refused["error"]): Promise<unknown> {
  let stored: unknown = null;
  const isStored = async () => {
    stored = await service.json("request", "show", String(request_id)).catch(() => null);
    return stored !== null;
  };
  await until(isStored, 10_000, "the refusal to be stored");
  return stored;
}

test("a key's five-hour limit refuses, says whose it is, and leaves its neighbours alone", async () => {
  const org = await organization();
  const limited = await newKey(service, org, "--limit", "session=0.00015");
  const neighbour = await newKey(service, org);
  const running = await begun(limited.key);
  const reserved = await refused(await chat(limited.key, "hello"));
  expect(reserved).toMatchObject({ code: "usage_reserved", limited_by: "key" });
  expect(reserved.message).toMatch(
    /but the key \S+ has \$0\.00015 left of its \$0\.00015 for this session of five hours/,
  );
  expect((await chat(neighbour.key, "hello")).status).toBe(200);
  running.leave();
  await nothingRuns(org);

  const usage = await usageOf(limited.key);
  expect(usage).toMatchObject({ object: "service.usage", key: { session: { usage_percent: expect.any(Number) } } });
  expect(usage.key).not.toHaveProperty("week");
  expect(usage).not.toHaveProperty("team");
  expect(Object.keys(await usageOf(neighbour.key))).toEqual(["object", "session", "week", "month"]);

  await service.json("limit", "set", "key", limited.id, "session=0.000001");
  const whole = await refused(await chat(limited.key, "hello"));
  const reached = { code: "usage_limit_reached", limited_by: "key", limit: "session", limit_value: dollars(1000) };
  expect(whole).toMatchObject(reached);
  expect(whole.message).toMatch(
    /more than the key \S+'s whole \$0\.000001 for this session of five hours\. .* higher limit of the key\.$/,
  );
});

test("a team's limits bind all of its keys, and the narrowest that resets last is named", async () => {
  const org = await organization();
  const team = await newTeam(org, "week=0.00012,concurrent_requests=2");
  const one = await newKey(service, org, "--team", "research");
  const two = await newKey(service, org, "--team", team.id);
  const first = await chat(one.key, "hello");
  expect(first.status).toBe(200);
  await first.text();
  // The first request's answer was charged, and what is left is less than the next request needs.
  await nothingRuns(org);
  await service.json("limit", "set", "team", team.id, "week=0.000111");
  const full = await refused(await chat(two.key, "hello"));
  expect(full).toMatchObject({ code: "usage_limit_reached", limited_by: "team", window: "week" });
  expect(full.message).toMatch(/the team research has \$[\d.]+ left of its \$0\.00011 for this week/);

  // Later an administrator reads why the request was refused: the message that the client got, and the figures.
  const { used } = (await service.json<Shown>("team", "show", team.id)).standing.week;
  const limit = {
    ...{ name: "week", value: dollars(111_000), used, held: dollars(0) },
    ...{ needed: { currency: "USD" }, reset_at: full.reset_at },
  };
  expect(await storedRefusal(full)).toMatchObject({ limited_by: "team", refusal: { message: full.message, limit } });
  const said = (await service.cli("request", "show", String(full.request_id))).stdout;
  expect(said).toContain(full.message);
  expect(said).toMatch(/^limit +week of the team, \$0\.00011: \$[\d.]+ used, .*; the request needed \$0\.0001\d/m);

  // The key leaves the team, and works as before.
  await service.json("key", "update", two.id, "--no-team");
  expect((await chat(two.key, "hello")).status).toBe(200);
  await service.json("team", "remove", "research", "--org", org);
  expect((await chat(one.key, "hello")).status).toBe(200);
  expect(await service.json("key", "show", one.id)).toMatchObject({ team: null });
});

const rateHeadersOf = ({ headers }: Response) => [
  ...["limit", "remaining"].map((name) => headers.get(`x-ratelimit-${name}-requests`)),
  headers.get("retry-after"),
];

test("a key's requests a minute: it sees its own, its neighbours see the organization's, and a change counts at once", async () => {
  const org = await organization("minute");
  const limited = await newKey(service, org, "--limit", "requests_per_minute=2");
  const neighbour = await newKey(service, org);
  for (const left of ["1", "0"]) {
    const response = await chat(limited.key, "hello", 10);
    expect([response.status, ...rateHeadersOf(response)]).toEqual([200, "2", left, null]);
  }
  const full = await chat(limited.key, "hello", 10);
  expect(rateHeadersOf(full)).toEqual(["2", "0", expect.stringMatching(/^(5\d|60)$/)]);
  const error = await refused(full);
  expect(error).toMatchObject({ code: "rate_limit_exceeded", limited_by: "key" });
  const limit = { name: "requests_per_minute", reset_at: null, held: null, needed: 1 };
  expect(await storedRefusal(error)).toMatchObject({ refusal: { message: error.message, limit } });
  expect(error.message).toMatch(/^The key test's limit of 2 requests a minute is reached\. Try again in \d+ s\.$/);
  const others = await chat(neighbour.key, "hello", 10);
  // Two requests of the limited key and this one count; the refused request was not counted.
  expect([others.status, ...rateHeadersOf(others)]).toEqual([200, "50", "47", null]);

  const { key } = await usageOf(limited.key);
  expect(key).toEqual({ requests_per_minute: { usage_percent: 100, reset_at: expect.any(String) } });
  const left_ms = Date.parse((key!.requests_per_minute as { reset_at: string }).reset_at) - Date.now();
  expect(left_ms > 0 && left_ms <= 60_000).toBe(true);
  expect(Object.keys(await usageOf(neighbour.key))).toEqual(["object", "session", "week", "month"]);

  await service.json("limit", "set", "key", limited.id, "requests_per_minute=3");
  await until(async () => (await chat(limited.key, "hello", 10)).status === 200, 5_000, "one more a minute");
  await service.json("limit", "set", "key", limited.id, "requests_per_minute=none");
  await until(async () => (await chat(limited.key, "hello", 10)).status === 200, 5_000, "no limit of the key's own");
  expect(await usageOf(limited.key)).not.toHaveProperty("key");
});

test("a change that is not possible is refused with the reason, and nothing of it is done", async () => {
  const [org, other, ofMinute] = [await organization(), await organization(), await organization("minute")];
  const foreign = await service.json<{ id: string }>("team", "create", "--org", other, "--name", "theirs");
  const [{ id: key }, { id: minute }] = [await newKey(service, org), await newKey(service, ofMinute)];
  await service.json("team", "create", "--org", org, "--name", "twice");
  const wrong = ["requests_per_minute=0", "requests_per_minute=1000000000000001", "week=", "week=0.1.5"];
  for (const [why, ...words] of [
    ["belongs to another organization", "key", "update", key, "--team", foreign.id],
    ["no team 'theirs'", "key", "create", "--org", org, "--name", "x", "--team", "theirs"],
    [
      `The limit 'week' of $0.20 for the key is above that of the organization '${org}', $0.20.`,
      ...["limit", "set", "key", key, "week=0.200000001"],
    ],
    [
      `The limit 'tokens_per_minute' of 5,001 for the key is above that of the organization '${ofMinute}', 5,000.`,
      ...["limit", "set", "key", minute, "tokens_per_minute=5001"],
    ],
    ...wrong.map((limit) => ["answered", "limit", "set", "key", key, limit]),
    ["must be one line", "team", "create", "--org", org, "--name", " "],
    ["already has a team 'twice'", "team", "create", "--org", org, "--name", "twice"],
  ] as string[][]) {
    const problem = await service.json(...words).then(() => "done", String);
    expect([words, problem]).toEqual([words, expect.stringContaining(why!)]);
    expect(problem.length).toBeLessThan(500);
  }
  const { team } = await service.json<{ team: null }>("key", "show", key);
  const { own } = await service.json<{ own: Record<string, null> }>("limit", "show", "key", key);
  expect([...Object.values(own), team]).toEqual(Array(7).fill(null));
});

describe("a limit for models", () => {
  /** The pattern that matches every model of the model's maker. */
  const maker = `${model.split("/")[0]}/*`;
  const limitModels = (whose: "key" | "org", id: string, limit: string, models: string) =>
    service.json("limit", "set", whose, id, limit, "--models", models);
  const receiptOf = (key: string, response: Response) => endedReceipt(service, requestIdOf(response), { key });

  test("that is full is named with its models by the error, its receipt and the usage", async () => {
    const org = await organization();
    const { id, key } = await newKey(service, org);
    await limitModels("key", id, "session=0.000001", model);
    await limitModels("org", org, "week=0.09", maker);
    const response = await chat(key, "hello");
    const named = { limited_by: "key", limited_models: model };
    const error = await refused(response);
    expect(error).toMatchObject({
      code: "usage_limit_reached",
      limit: "session",
      limit_value: dollars(1_000),
      ...named,
    });
    expect(error.message).toEndWith(`ask your administrator for a higher limit of the key for ${model}.`);
    const its = { outcome: "refused", error_code: "usage_limit_reached", ...named };
    expect(await receiptOf(key, response)).toMatchObject(its);
    const served = await chat(key, "hello", 256, { model: plainModel });
    expect(served.status).toBe(200);
    expect(await receiptOf(key, served)).toMatchObject({ limited_by: null, limited_models: null });
    expect(await usageOf(key)).toMatchObject({
      models: { [maker]: { week: { usage_percent: expect.any(Number) } } },
      key: { models: { [model]: { session: { usage_percent: 0 } } } },
    });
  });

  test("of requests a minute counts at once, in errors and in the usage", async () => {
    const { id, key } = await newKey(service, await organization());
    await limitModels("key", id, "requests_per_minute=1", model);
    expect((await chat(key, "hello")).status).toBe(200);
    const named = { limited_by: "key", limited_models: model };
    expect(await refused(await chat(key, "hello"))).toMatchObject({ code: "rate_limit_exceeded", ...named });
    expect((await chat(key, "hello", 256, { model: plainModel })).status).toBe(200);
    const full = { [model]: { requests_per_minute: { usage_percent: 100 } } };
    expect((await usageOf(key)).key).toMatchObject({ models: full });
  });

  test("that cuts a whole answer short is named in its receipt", async () => {
    const { id, key } = await newKey(service, await organization());
    await limitModels("key", id, "week=0.0004", maker);
    const cut = await chat(key, "", 16_000, { messages: says("tokens=16000") });
    expect(await cut.json()).toMatchObject({ choices: [{ finish_reason: "length" }] });
    expect(await receiptOf(key, cut)).toMatchObject({
      ...{ stopped_by: "usage_window", limited_by: "key", limited_models: maker },
    });
    const { stdout } = await service.cli("request", "show", requestIdOf(cut));
    expect(stdout).toContain(`a usage limit of the key for ${maker}`);
  });
});
