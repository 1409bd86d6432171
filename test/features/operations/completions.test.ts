/** POST /v1/completions: the guarantees for clients, with and without streaming, in front of an engine over HTTP. */
import { afterAll, describe, expect, test } from "bun:test";
import { checkedClient } from "../../clients/sdk.ts";
import { engineModel, eventsOf, kindModels, refusalOf, startService, words } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { modelEntry } from "./model-entry.ts";

/** The requests that reached an engine with llama.cpp's paths, which has `/infill` beside `/v1`. */
const infilled: { path: string; body: Record<string, unknown> }[] = [];
const llama = Bun.serve({
  port: 0,
  async fetch(request) {
    const body = (await request.json()) as Record<string, unknown>;
    infilled.push({ path: new URL(request.url).pathname, body });
    const end = { tokens_predicted: 2, tokens_evaluated: 9, timings: { cache_n: 4 }, stop: true, stop_type: "limit" };
    if (body.stream !== true) return Response.json({ content: " a + b", prompt: "<fim>…", ...end });
    const events = [
      { content: " a", stop: false },
      { content: " + b", stop: false },
      { content: "", ...end },
    ];
    return new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""), {
      headers: { "content-type": "text/event-stream" },
    });
  },
});
const fimModel = "acme/fill-1";
const prices = { input: 0.1, output: 0.4 };
const service = await startService({
  hasKinds: true,
  engine: { directives: "echo" },
  upstream: `dialect: generic
  fim:
    url: "http://127.0.0.1:${llama.port}/v1"
    dialect: llama.cpp
  strict:
    url: "http://127.0.0.1:${llama.port}/v1"
    dialect: vllm`,
  extraModels:
    modelEntry(fimModel, "completion", "fim", { extra_params: ["top_k"], prices: { ...prices, cached_input: 0.01 } }) +
    modelEntry("acme/strict-1", "completion", "strict", { prices }),
});
afterAll(async () => {
  await service.stop();
  await llama.stop(true);
}, 60_000);

const model = kindModels.completion;
const complete = (body: object) => service.post("/v1/completions", { model, ...body });
const asked = () => service.engine.requests.at(-1)?.body as Record<string, unknown>;

interface Chunk {
  choices: { index: number; text: string; logprobs: object | null; finish_reason: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null;
}

describe("a whole answer", () => {
  test("has the engine's text, the public model id, a reason and exact usage, and is charged by it", async () => {
    const response = await complete({ prompt: words(5), max_tokens: 30 });
    expect(response.status).toBe(200);
    const body = (await response.json()) as Chunk & { id: string; object: string; model: string };
    expect(body).toMatchObject({ object: "text_completion", model });
    expect(body.id).toMatch(/^cmpl-[0-9a-f]{32}$/);
    expect(body.choices).toEqual([{ text: words(5), index: 0, logprobs: null, finish_reason: "stop" }]);
    const { usage } = body;
    expect(usage?.completion_tokens).toBe(5);
    const receipt = await endedReceipt(service, requestIdOf(response));
    expect(receipt).toMatchObject({ operation: "completions", stream: false, usage: { output_tokens: 5 } });
    expect(nanosOf(receipt.cost.charged)).toBe(usage!.prompt_tokens * 100 + 5 * 400);
  });

  test("is cut at the cap, which is 16 if nothing is said", async () => {
    const cut = (await (await complete({ prompt: words(40) })).json()) as Chunk;
    expect(cut.choices[0]?.finish_reason).toBe("length");
    expect(cut.usage?.completion_tokens).toBe(16);
    expect(asked()).toMatchObject({ model: engineModel, max_tokens: 16, stream: false });
  });

  test("keeps log probabilities in the form of completions", async () => {
    const { choices } = (await (await complete({ prompt: "a b", logprobs: 1, max_tokens: 2 })).json()) as Chunk;
    expect(Object.keys(choices[0]!.logprobs!)).toEqual(["tokens", "token_logprobs", "top_logprobs", "text_offset"]);
  });
});

describe("stop sequences", () => {
  const stop = Array.from({ length: 12 }, (_, at) => `<|mark_${at}|>`);
  const strict = "acme/strict-1";

  test("are as many as an editor sends, for engines that take them", async () => {
    expect((await complete({ prompt: "a", stop })).status).toBe(200);
    expect(asked().stop).toEqual(stop);
  });

  test("may be an empty list, which Zed sends and at which transformers fails: the engine gets none", async () => {
    expect((await complete({ prompt: "a", stop: [] })).status).toBe(200);
    expect(asked()).not.toHaveProperty("stop");
  });

  test("that are more than the engine takes are refused by name, and it is not asked", async () => {
    const before = service.engine.counts.requests;
    const refused = await complete({ model: strict, prompt: "a", stop });
    expect(await refusalOf(refused)).toEqual([400, "unsupported_feature", "stop"]);
    expect(service.engine.counts.requests).toBe(before);
    const tooMany = await complete({ prompt: "a", stop: Array(65).fill("x") });
    expect((await refusalOf(tooMany)).slice(0, 2)).toEqual([400, "invalid_value"]);
  });
});

describe("a streamed answer", () => {
  test("brings the text piece by piece, one end, usage if it is asked for, and one [DONE]", async () => {
    const stream_options = { include_usage: true };
    const response = await complete({ prompt: words(4), max_tokens: 9, stream: true, stream_options });
    const events = await eventsOf(response);
    expect(events.filter((event) => event === "[DONE]")).toHaveLength(1);
    expect(events.at(-1)).toBe("[DONE]");
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event) as Chunk);
    const last = chunks.pop()!;
    expect(last.choices).toEqual([]);
    expect(last.usage?.completion_tokens).toBe(4);
    expect(chunks.map(({ choices }) => choices[0]!.text).join("")).toBe(words(4));
    const reasons = chunks.map(({ choices }) => choices[0]!.finish_reason);
    expect(reasons.filter((reason) => reason !== null)).toEqual(["stop"]);
    const receipt = await endedReceipt(service, requestIdOf(response));
    const usage = { output_tokens: 4, source: "reported" };
    expect(receipt).toMatchObject({ outcome: "completed", stream: true, usage });
  });

  test("has no usage unless it is asked for, and the same text as the whole one", async () => {
    const streamed = await eventsOf(await complete({ prompt: "one two three", max_tokens: 9, stream: true }));
    expect(streamed.join("")).not.toContain("usage");
    const whole = (await (await complete({ prompt: "one two three", max_tokens: 9 })).json()) as Chunk;
    const text = streamed.slice(0, -1).map((event) => (JSON.parse(event) as Chunk).choices[0]!.text);
    expect(text.join("")).toBe(whole.choices[0]!.text);
  });

  test("that the engine cuts off ends with an error and [DONE], and what was delivered is charged", async () => {
    const prompt = `[simulator: cut-after=3] ${words(9)}`;
    const response = await complete({ prompt, max_tokens: 20, stream: true });
    const events = await eventsOf(response);
    expect(events.at(-1)).toBe("[DONE]");
    expect(JSON.parse(events.at(-2)!)).toMatchObject({ error: { code: "upstream_unavailable" } });
    const receipt = await endedReceipt(service, requestIdOf(response));
    expect(receipt).toMatchObject({ outcome: "failed", usage: { output_tokens: 3 } });
  });
});

describe("a suffix", () => {
  test("that is empty is none: vLLM refuses the field whatever it holds", async () => {
    expect((await complete({ prompt: "a", suffix: "" })).status).toBe(200);
    expect(asked()).not.toHaveProperty("suffix");
  });

  test("is sent to llama.cpp's own path, and its answer has our form, whole and streamed", async () => {
    const body = { model: fimModel, prompt: "return", suffix: "\n}", max_tokens: 8 };
    const response = await service.post("/v1/completions", body);
    const whole = (await response.json()) as Chunk;
    const asked = { input_prefix: "return", input_suffix: "\n}", n_predict: 8 };
    expect(infilled.at(-1)).toMatchObject({ path: "/infill", body: asked });
    expect(whole.choices).toEqual([{ index: 0, text: " a + b", logprobs: null, finish_reason: "length" }]);
    expect(whole.usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 2 });
    const receipt = await endedReceipt(service, requestIdOf(response));
    expect(nanosOf(receipt.cost.charged)).toBe(5 * 100 + 4 * 10 + 2 * 400);
    const events = await eventsOf(await service.post("/v1/completions", { ...body, stream: true }));
    const texts = events.slice(0, -1).map((event) => (JSON.parse(event) as Chunk).choices[0]!);
    expect(texts.map(({ text }) => text).join("")).toBe(" a + b");
    expect(texts.at(-1)?.finish_reason).toBe("length");
  });

  test("has at llama.cpp's own path what the model's extra_params allow, and is refused what is refused elsewhere", async () => {
    const body = { model: fimModel, prompt: "return", suffix: "\n}", top_k: 3, seed: 7, stop: "\n", logit_bias: {} };
    expect((await complete(body)).status).toBe(200);
    expect(infilled.at(-1)?.body).toEqual({
      ...{ input_prefix: "return", input_suffix: "\n}", n_predict: 16, stream: false },
      ...{ top_k: 3, seed: 7, stop: ["\n"] },
    });
    expect(await refusalOf(await complete({ ...body, echo: true }))).toEqual([400, "unsupported_feature", "echo"]);
  });
});

for (const [what, body, code, param] of [
  ["a suffix that the engine would leave out", { prompt: "a", suffix: "b" }, "unsupported_feature", "suffix"],
  [
    "an echo from an engine that gives none",
    { model: fimModel, prompt: "a", echo: true },
    "unsupported_feature",
    "echo",
  ],
  [
    "log probabilities from such an engine",
    { model: fimModel, prompt: "a", logprobs: 1 },
    "unsupported_feature",
    "logprobs",
  ],
  ["several prompts", { prompt: ["a", "b"] }, "unsupported_feature", "prompt"],
  ["several choices", { prompt: "a", n: 2 }, "unsupported_feature", "n"],
  ["no prompt", {}, "missing_field", "prompt"],
  ["no room", { prompt: "a", max_tokens: 0 }, "invalid_value", "max_tokens"],
  ["options of a stream without one", { prompt: "a", stream_options: {} }, "invalid_value", "stream_options"],
] as const)
  test(`a request with ${what} is refused by name`, async () => {
    expect(await refusalOf(await complete(body))).toEqual([400, code, param]);
  });

test("a list of one prompt, and token ids, are one prompt", async () => {
  await complete({ prompt: ["hello"] });
  expect(asked().prompt).toBe("hello");
  await complete({ prompt: [[1, 2, 3]] });
  expect(asked().prompt).toEqual([1, 2, 3]);
});

test("OpenAI's SDK completes and streams, unchanged", async () => {
  const client = checkedClient(service);
  const whole = await client.completions.create({ model, prompt: "hello there", max_tokens: 5 });
  const stream = await client.completions.create({ model, prompt: "hello there", max_tokens: 5, stream: true });
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.text ?? "";
  expect(text).toBe(whole.choices[0]!.text);
  expect(text).toBe("hello there");
});
