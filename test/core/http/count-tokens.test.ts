/**
 * Token counts of a request, over real sockets, by Messages and by Responses: exact, free of charge, and without
 * delaying other requests.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import type { RequestReceipt } from "../../../src/features/receipts/receipt-shape.ts";
import { busyness } from "../../harness/busyness.ts";
import { lineOf } from "../../harness/log-lines.ts";
import { newKey, newMember } from "../../harness/organizations.ts";
import { endedReceipt } from "../../harness/receipts.ts";
import { startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const path = "/v1/messages/count_tokens";
const exact = "openai/gpt-oss-20b";
const estimated = "z-ai/glm-4.6";

const service = await startSluice();
afterAll(() => service.stop());

const foo = (model: string, content: unknown = "foo") => ({ model, messages: [{ role: "user", content }], tools: [] });
const count = async (body: unknown) => {
  const response = await service.post(path, body);
  const { input_tokens } = (await response.json()) as { input_tokens: number };
  return { status: response.status, input_tokens };
};

/** The usage of a request whose client left once it was admitted. */
async function leftAfter(body: object): Promise<RequestReceipt["usage"]> {
  const leaving = new AbortController();
  const logged = service.stderr().length;
  const answer = service.post("/v1/messages", { ...body, max_tokens: 600 }, { signal: leaving.signal });
  const gone = answer.then(() => {}).catch(() => {});
  const holds = async () => /^usage_holds 1$/m.test(await (await service.fetch("/metrics")).text());
  await until(holds, 10_000, "the grant");
  leaving.abort();
  await gone;
  const stderr = () => service.stderr().slice(logged);
  const { request_id } = await lineOf({ stderr }, { event: "request", status: 499 });
  const { outcome, usage } = await endedReceipt(service, request_id);
  expect(outcome).toBe("cancelled");
  return usage;
}

describe("a count", () => {
  test("is exact for a model whose tokenizer the catalog names", async () => {
    expect(await count(foo(exact))).toEqual({ status: 200, input_tokens: 68 });
    expect(await count(foo("meta-llama/llama-3.3-70b-instruct"))).toEqual({ status: 200, input_tokens: 36 });
  });

  test("grows with the text where it is an estimate, and comes near to what the engine reports", async () => {
    const text = "Every morning the gardener counts her tulips and writes the number down. ".repeat(200);
    const before = await count(foo(estimated, text));
    expect(before.input_tokens).toBeGreaterThan((await count(foo(estimated, text.slice(0, 3000)))).input_tokens);
    const ask = { ...foo(estimated, text), max_tokens: 8 };
    let reported = 0;
    for (let round = 0; round < 3; round++) {
      const answer = (await (await service.post("/v1/messages", ask)).json()) as { usage: { input_tokens: number } };
      reported = answer.usage.input_tokens;
    }
    const { input_tokens } = await count(foo(estimated, text));
    expect(Math.abs(input_tokens / reported - 1)).toBeLessThan(0.05);
  });

  test("learns nothing from white space between values, nor from fields that no engine gets", async () => {
    const text = "Every morning the gardener counts her tulips and writes the number down. ".repeat(200);
    const ask = { ...foo("qwen/qwen3-32b", text), max_tokens: 8 };
    for (let round = 0; round < 3; round++) await (await service.post("/v1/messages", ask)).text();
    const { input_tokens } = await count(ask);
    const blank = JSON.stringify({ ...ask, messages: foo("", "a").messages }).replace(":", `:${" \n".repeat(30_000)}`);
    for (let round = 0; round < 10; round++) expect((await service.post("/v1/messages", blank)).status).toBe(200);
    const unsent = { ...ask, messages: foo("", "a").messages, unknown: "a".repeat(60_000) };
    for (let round = 0; round < 10; round++) expect((await service.post("/v1/messages", unsent)).status).toBe(200);
    expect(Math.abs((await count(ask)).input_tokens / input_tokens - 1)).toBeLessThan(0.1);
    expect((await count(blank)).input_tokens).toBeLessThan(100);
  });

  test("is what a client is charged that leaves before its answer", async () => {
    const body = foo(exact, `[simulator: ttft=20000] ${"Every morning the gardener counts her tulips. ".repeat(50)}`);
    const { input_tokens } = await count(body);
    // If the worker that counts gets no time within its second, because the machine is busy, the charge is the
    // estimate.
    let usage = await leftAfter(body);
    for (let attempt = 0; attempt < 5 && usage.source === "estimated"; attempt++) usage = await leftAfter(body);
    expect(usage).toMatchObject({ input_tokens, output_tokens: 0, source: "counted" });
  }, 90_000);
});

test("a tool without a name is counted, as the contract has it: which engine will be asked is not known", async () => {
  expect((await count({ ...foo(exact), tools: [{ defer_loading: true }] })).status).toBe(200);
});

test("two dozen at once, as Claude Code asks, are all answered", async () => {
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, at) => count(foo(at % 2 ? exact : estimated, `foo ${"bar ".repeat(at)}`))),
  );
  expect(answers.map((answer) => answer.status)).toEqual(Array(24).fill(200));
});

test("a body of 32 MiB is counted, and holds up nobody", async () => {
  const line = "It was a bright cold day in a month without a name. ";
  const text = line.repeat(Math.floor((32 * 1024 * 1024 - 200) / line.length));
  let slowest_ms = Number.POSITIVE_INFINITY;
  // On a busy machine one run may be slow, but not all of them.
  for (let attempt = 0; attempt < 6 && slowest_ms > 200 * busyness(); attempt++) {
    let counting = true;
    const counted = count(foo(exact, text)).finally(() => {
      counting = false;
    });
    let longest_ms = 0;
    while (counting) {
      const asked_ms = performance.now();
      await (await fetch(`${service.url}/livez`)).text();
      longest_ms = Math.max(longest_ms, performance.now() - asked_ms);
    }
    expect((await counted).input_tokens).toBeGreaterThan(5_000_000);
    slowest_ms = Math.min(slowest_ms, longest_ms);
  }
  expect(slowest_ms).toBeLessThan(200 * busyness());
});

const inputPath = "/v1/responses/input_tokens";
const inputTokens = async (body: object) => {
  const response = await service.post(inputPath, { model: exact, ...body });
  expect(response.status).toBe(200);
  const { object, input_tokens } = (await response.json()) as { object: string; input_tokens: number };
  expect(object).toBe("response.input_tokens");
  return input_tokens;
};

describe("a count of a response's input", () => {
  test("is what the same messages are by Messages, of every form that an input has", async () => {
    const messages = [{ role: "user", content: "foo" }];
    const { status, input_tokens } = await count({ model: exact, messages });
    expect(status).toBe(200);
    for (const input of ["foo", messages, [{ type: "message", role: "user", content: "foo" }]])
      expect(await inputTokens({ input })).toBe(input_tokens);
  });

  test("is an estimate where the tokenizer is not known", async () => {
    const text = "Every morning the gardener counts her tulips. ".repeat(100);
    const counted = await inputTokens({ model: estimated, input: text });
    expect(counted).toBeGreaterThan(text.length / 8);
    expect(counted).toBeLessThan(text.length / 2);
  });

  test("grows with instructions, tools and a summary of what was", async () => {
    const plain = await inputTokens({ input: "foo" });
    const tools = [{ type: "function", name: "get_weather", parameters: { type: "object", properties: {} } }];
    expect(await inputTokens({ input: "foo", instructions: "Answer in one sentence." })).toBeGreaterThan(plain);
    expect(await inputTokens({ input: "foo", tools })).toBeGreaterThan(plain);
    const compacted = { type: "compaction", encrypted_content: `compaction.1:${"word ".repeat(100)}` };
    expect(await inputTokens({ input: [compacted, { role: "user", content: "foo" }] })).toBeGreaterThan(plain + 100);
  });

  test("takes in the stored conversation and the items that it refers to", async () => {
    const first = { model: exact, input: `Remember this: ${"word ".repeat(50)}` };
    const response = (await (await service.post("/v1/responses", first)).json()) as ResponseObject;
    const alone = await inputTokens({ input: "foo" });
    const continued = await inputTokens({ input: "foo", previous_response_id: response.id });
    expect(continued).toBeGreaterThan(alone + 50);
    expect(await inputTokens({ previous_response_id: response.id })).toBeLessThan(continued);
    const reference = { type: "item_reference", id: response.output.at(-1)!.id };
    expect(await inputTokens({ input: [reference, { role: "user", content: "foo" }] })).toBeGreaterThan(alone);
  });
});

test.each<[string, object]>([
  [path, foo(exact)],
  [inputPath, { model: exact, input: "foo" }],
])("%s needs a valid key and no scope, and opens no window", async (at, body) => {
  const status = async (key: string | null) => (await service.post(at, body, { key })).status;
  const { key } = await newMember(service, "pro", "--scopes", "usage:read");
  expect([await status(null), await status(key)]).toEqual([401, 200]);
  // The end of the session. While no session is open, the end moves with the clock.
  const sessionEnd = async () => {
    const usage = await (await service.fetch("/v1/service/usage", { key })).json();
    return (usage as { session: { reset_at: string } }).session.reset_at;
  };
  const end = await sessionEnd();
  await until(async () => (await sessionEnd()) !== end, 5_000, "another end of the session");
  const limited = await newKey(service, service.organization, "--models", estimated);
  const refused = await service.post(at, body, { key: limited.key });
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('"model_not_allowed"')]);
});
