/**
 * Limits of a plan as a client sees them: windows, holds, concurrency, extra usage, and what is left after a refusal.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Money } from "../../../src/core/inference/money.ts";
import { moment } from "../../../src/core/time/written.ts";
import type { RequestReceipt } from "../../../src/features/receipts/receipt-shape.ts";
import { eventsOf, model, plainModel, says, startService, words } from "../../harness/engine.ts";
import { dollars, nanosOf, typed } from "../../harness/money.ts";
import { newMember } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

// The model's prices in nanos: 100 a token of input, 400 of output. A short request that asks for 256 tokens holds some
// 110,000.
const plans = {
  small: "{ session: 150000, concurrent_requests: 8 }",
  layered: "{ session: 150000, week: 150000, month: 1000000 }",
  short: "{ session: 200000 }",
  wide: "{ session: 1000000 }",
};

const service = await startService({ plans, engine: { directives: "", namesModel: false } });
afterAll(() => service.stop(), 60_000);

interface Client {
  organization: string;
  key: string;
  chat(body: object, init?: RequestInit): Promise<Response>;
  get<T>(path: string): Promise<T>;
}

async function clientOn(plan: keyof typeof plans | "unlimited", ...keyOptions: string[]): Promise<Client> {
  const { organization, key } = await newMember(service, plan, ...keyOptions);
  return {
    organization,
    key,
    chat: (body, init = {}) => service.post("/v1/chat/completions", { model, ...body }, { ...init, key }),
    get: async <T>(path: string) => (await service.fetch(path, { key })).json() as Promise<T>,
  };
}

interface Usage {
  session: { usage_percent: number; reset_at: string };
  week: { usage_percent: number; reset_at: string };
  month: { usage_percent: number; reset_at: string };
}
interface Refused {
  error: Record<string, unknown> & { code: string; type: string; message: string };
}

const tooLittle =
  /^This request needs at least \$(?<needs>[\d.]+), but the organization \S+ has \$0\.00031 left of its \$0\.001 for this session of five hours \(68\.59% used\)\. It starts anew on (?<at>.+ \(UTC\))\. Send less input, choose a cheaper model, wait until then, or ask your administrator for a higher plan or for extra usage\.$/;
const protocols: [path: string, asks: (content: string) => object][] = [
  ["/v1/chat/completions", (content) => ({ messages: [{ role: "user", content }], max_tokens: 10 })],
  ["/v1/messages", (content) => ({ messages: [{ role: "user", content }], max_tokens: 10 })],
  ["/v1/responses", (input) => ({ input, max_output_tokens: 16 })],
];

/** Sets the used amount of the open session to `nanos`, once nothing runs any more. */
async function usedExactly({ organization }: Client, nanos: number): Promise<void> {
  type Shown = { session: { used: Money; held: Money } };
  let session: Shown["session"] = { used: dollars(0), held: dollars(1) };
  await until(
    async () => {
      ({ session } = await service.json<Shown>("usage", "show", organization));
      return nanosOf(session.held) === 0;
    },
    10_000,
    "what was asked to be settled",
  );
  const change = ["--window", "session", `--amount=${typed(nanos - nanosOf(session.used))}`, "--reason", "test"];
  await service.json("usage", "adjust", organization, ...change);
}

const errorOf = async (response: Response) => ((await response.json()) as Refused).error;
const usageOf = (client: Client) => client.get<Usage>("/v1/service/usage");

const receiptOf = ({ key }: Client, id: string) => endedReceipt(service, id, { key });

/** Waits for a change that any node made, which every node knows within a second. */
const known = (holds: () => Promise<boolean>) => until(holds, 1_000, "the change to be known");
const percentIs = (client: Client, percent: number) =>
  known(async () => (await usageOf(client)).session.usage_percent === percent);

/**
 * Uses so much of 150,000 nanos that a request that asks for 256 tokens no longer fits, and waits for the settlement.
 */
async function usedUp(client: Client): Promise<RequestReceipt> {
  const response = await client.chat({ messages: says("tokens=250"), max_tokens: 256 });
  expect(response.status).toBe(200);
  return receiptOf(client, requestIdOf(response));
}

const asksMuch = { messages: says("", "again"), max_tokens: 256 };
const asksLittle = { messages: says("", "again"), max_tokens: 8 };

test("without a plan inference is 402 at once, reading is not, and a new plan's limits count at once", async () => {
  const client = await clientOn("small");
  const used = await usedUp(client);
  await service.json("org", "plan", client.organization, "--none");
  await percentIs(client, 0);
  const response = await client.chat(asksLittle);
  expect([response.status, response.headers.get("x-should-retry")]).toEqual([402, "false"]);
  expect(await errorOf(response)).toMatchObject({ code: "no_active_plan", type: "billing_error" });
  const messages = await service.post("/v1/messages", { model, ...asksLittle }, { key: client.key });
  expect([messages.status, await errorOf(messages)]).toMatchObject([
    ...[402, { type: "billing_error", details: { error_code: "no_active_plan" } }],
  ]);
  await service.json("org", "plan", client.organization, "short");
  await percentIs(client, Math.floor((nanosOf(used.cost.charged) * 10_000) / 200_000) / 100);
  expect((await client.chat(asksLittle)).status).toBe(200);
});

/** Expects the fields and headers that stop Claude Code at once. Its counting of tokens still works. */
async function expectToStopClaudeCode(
  { key }: Client,
  headers: Headers,
  error: Record<string, unknown>,
): Promise<void> {
  expect(error).toMatchObject({
    type: "rate_limit_error",
    details: { error_code: "usage_limit_reached", window: "session", plan_type: "wide" },
  });
  const { resets_at } = error.details as { resets_at: number };
  expect(headers.get("anthropic-ratelimit-unified-status")).toBe("rejected");
  expect(headers.get("anthropic-ratelimit-unified-reset")).toBe(String(resets_at));
  const counted = await service.post("/v1/messages/count_tokens", { model, messages: says("") }, { key });
  expect(counted.status).toBe(200);
}

describe("a window that is full of settled use", () => {
  test("refuses with all that a client needs, streamed or not, and takes what still fits", async () => {
    const client = await clientOn("layered");
    const { windows } = await usedUp(client);
    const usage = await usageOf(client);
    for (const stream of [false, true]) {
      const response = await client.chat({ ...asksMuch, stream });
      expect(response.status).toBe(429);
      expect(response.headers.get("content-type")).toContain("json");
      const { message, ...error } = await errorOf(response);
      expect(message).toContain("for this week");
      // The session and the week are both used up; the error names the one that resets last.
      expect(error).toMatchObject({
        code: "usage_limit_reached",
        type: "usage_limit_error",
        param: null,
        request_id: requestIdOf(response),
        window: "week",
        reset_at: usage.week.reset_at,
        resets_at: Math.ceil(Date.parse(usage.week.reset_at) / 1000),
        extra_usage: { enabled: false, available: dollars(0) },
        plan_type: "layered",
        limited_by: "organization",
      });
      expect(error.resets_in_seconds).toBeWithin(1, 7 * 86_400 + 1);
      expect(response.headers.get("retry-after")).toBeNull();
      expect(response.headers.get("x-should-retry")).toBe("false");
      for (const kind of ["session", "week", "month"] as const) {
        expect(response.headers.get(`x-service-usage-${kind}-percent`)).toBe(String(usage[kind].usage_percent));
        expect(response.headers.get(`x-service-usage-${kind}-reset-at`)).toBe(usage[kind].reset_at);
      }
    }
    expect(usage.session.usage_percent).toBe(windows?.session.usage_percent_after ?? -1);
    const little = await client.chat(asksLittle);
    expect(little.status).toBe(200);
    expect(little.headers.get("x-service-usage-session-percent")).toBe(String(usage.session.usage_percent));
    expect((await receiptOf(client, requestIdOf(little))).windows?.session.usage_percent_before).toBe(
      usage.session.usage_percent,
    );
  });

  test.each(protocols)("says what is so in every protocol: %s", async (path, asks) => {
    const client = await clientOn("wide");
    const ask = (text: string, stream: boolean) =>
      service.post(path, { model, stream, ...asks(text) }, { key: client.key });
    await (await ask("hello", false)).text();
    await usedExactly(client, 685_900);
    for (const stream of [false, true]) {
      const refused = await ask(words(3_000), stream);
      const { message, ...error } = await errorOf(refused);
      const said = tooLittle.exec(message)?.groups;
      expect([refused.status, message]).toEqual([429, expect.stringMatching(tooLittle)]);
      expect(Number(said?.needs)).toBeWithin(0.000314, 0.001);
      expect(said?.at).toBe(moment(new Date((await usageOf(client)).session.reset_at)));
      expect(refused.headers.get("x-service-usage-session-percent")).toBe("68.59");
      expect(["x-should-retry", "retry-after"].map((name) => refused.headers.get(name))).toEqual(["false", null]);
      if (path === "/v1/messages") await expectToStopClaudeCode(client, refused.headers, error);
    }
    // The message says that a smaller request fits, and it does.
    await (await ask("hello", false)).text();
    await usedExactly(client, 1_000_000);
    const { reset_at } = (await usageOf(client)).session;
    for (const stream of [false, true]) {
      expect((await errorOf(await ask("hello", stream))).message).toBe(
        `The organization ${client.organization} has used its $0.001 for this session of five hours. It starts anew on ${moment(new Date(reset_at))}. Wait until then, or ask your administrator for a higher plan or for extra usage.`,
      );
    }
  });
});

test("extra usage takes what the plan cannot, up to its cap, and says so; the plan's windows stay as they are", async () => {
  const client = await clientOn("small");
  await usedUp(client);
  const before = await usageOf(client);
  await service.json("org", "extra-usage", client.organization, "on", "--cap", typed(120_000));
  const response = await client.chat({ messages: says("tokens=250"), max_tokens: 256 });
  expect([response.status, response.headers.get("x-service-usage-source")]).toEqual([200, "extra"]);
  const receipt = await receiptOf(client, requestIdOf(response));
  expect(receipt).toMatchObject({ billing_source: "extra", outcome: "completed", cost: { uncharged: dollars(0) } });
  expect(await usageOf(client)).toEqual(before);
  const shown = await service.json<{ extra_usage: object }>("usage", "show", client.organization);
  const { charged } = receipt.cost;
  expect(shown.extra_usage).toEqual({ enabled: true, cap: dollars(120_000), used: charged, held: dollars(0) });

  const refused = await client.chat(asksMuch);
  expect(await errorOf(refused)).toMatchObject({
    code: "usage_limit_reached",
    extra_usage: { enabled: true, available: dollars(120_000 - nanosOf(charged)) },
  });
  const little = await client.chat(asksLittle);
  expect(little.headers.get("x-service-usage-source")).toBe("plan");
  await little.text();
  await service.json("org", "extra-usage", client.organization, "off");
  expect(await errorOf(await client.chat(asksMuch))).toMatchObject({
    extra_usage: { enabled: false, available: dollars(0) },
  });
});

describe("an answer without a cap ends with length where its window ends, never past it", () => {
  const asksForMore = { messages: says("tokens=3000") };

  test("streamed", async () => {
    const client = await clientOn("short");
    const response = await client.chat({ ...asksForMore, stream: true });
    const events = await eventsOf(response);
    const reasons = events.slice(0, -1).map((data) => JSON.parse(data).choices[0]?.finish_reason);
    expect(reasons.filter(Boolean)).toEqual(["length"]);
    expect(events.at(-1)).toBe("[DONE]");
    await expectUsedToTheEnd(client, requestIdOf(response));
  });

  /**
   * Checks that the window is used up except for a part of the hold for the input: the input is estimated at the
   * highest price and costs less in the end, and the difference is not available to the output.
   */
  async function expectUsedToTheEnd(client: Client, id: string): Promise<RequestReceipt> {
    const receipt = await receiptOf(client, id);
    expect(receipt).toMatchObject({
      outcome: "completed",
      stopped_by: "usage_window",
      cost: { uncharged: dollars(0) },
    });
    const [held, charged] = [nanosOf(receipt.cost.held), nanosOf(receipt.cost.charged)];
    expect(held).toBeWithin(200_000 - 400, 200_001);
    const spare = held - charged;
    const inputHeld = held - Math.floor(receipt.usage.output_tokens) * 400;
    expect(spare).toBeWithin(0, inputHeld + 1);
    expect((await usageOf(client)).session.usage_percent).toBeLessThanOrEqual(100);
    const next = await client.chat({ messages: says("", "more") });
    expect([next.status, (await errorOf(next)).code]).toEqual([429, "usage_limit_reached"]);
    return receipt;
  }
});

describe("a refused request", () => {
  test("has a receipt that says so, opens no window and is part of no sum", async () => {
    const client = await clientOn("small", "--models", model);
    const begin = await usageOf(client);
    const wrong: [number, string, string | null, boolean | null, Promise<Response>][] = [
      [400, "invalid_json", null, null, service.post("/v1/chat/completions", "{", { key: client.key })],
      [400, "unknown_field", model, true, client.chat({ ...asksLittle, stream: true, bogus: 1 })],
      [403, "model_not_allowed", plainModel, false, client.chat({ ...asksLittle, model: plainModel })],
      [404, "model_not_found", null, false, client.chat({ ...asksLittle, model: "acme/nothing" })],
    ];
    for (const [status, code, named, stream, asked] of wrong) {
      const response = await asked;
      expect([response.status, (await errorOf(response)).code]).toEqual([status, code]);
      const receipt = await receiptOf(client, requestIdOf(response));
      expect(receipt).toMatchObject({
        ...{ model: named, stream, outcome: "refused", error_code: code, ended_at: receipt.created_at },
        ...{ attempts: null, prices: null, billing_source: null, windows: null },
        usage: { input_tokens: 0, output_tokens: 0 },
        cost: { held: dollars(0), charged: dollars(0), uncharged: dollars(0) },
      });
      expect(Math.abs(Date.parse(receipt.created_at) - Date.now())).toBeLessThan(20_000);
      const elsewhere = await service.fetch(`/v1/service/requests/${requestIdOf(response)}`);
      expect(elsewhere.status).toBe(404);
    }
    const idle = await usageOf(client);
    expect(idle.session.usage_percent).toBe(0);
    expect(Date.parse(idle.session.reset_at)).toBeGreaterThan(Date.parse(begin.session.reset_at));
  });
});

describe("for operators", () => {
  test("decisions, holds, settlements, the book and the way of a revocation are metrics", async () => {
    const scraped = async () => (await service.fetch("/metrics")).text();
    await until(async () => /^usage_holds 0$/m.test(await scraped()), 5_000, "nothing to be held");
    const text = await scraped();
    for (const line of [
      /^admission_decisions_total\{decision="granted",reason="plan"\} [1-9]/m,
      /^admission_decisions_total\{decision="granted",reason="extra"\} [1-9]/m,
      /^admission_decisions_total\{decision="refused",reason="usage_limit_reached"\} [1-9]/m,
      /^admission_decisions_total\{decision="refused",reason="no_active_plan"\} [1-9]/m,
      /^usage_settlement_waiting 0$/m,
      /^usage_recovered_total 0$/m,
      /^usage_ledger_mismatch \S+$/m,
      /^usage_partitions_ahead \S+$/m,
      /^usage_seals_behind \S+$/m,
      /^key_revocation_propagation_seconds_count [1-9]/m,
    ]) {
      expect(text).toMatch(line);
    }
  });
});
