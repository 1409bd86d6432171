/**
 * A real engine behind the service, asked for embeddings, rankings, completions and infill: by the official SDK, by
 * Python clients, and by requests as editors and Open WebUI send them. Vectors, scores, texts and log probabilities are
 * those of the engine; no other part of its response reaches the client; and the charge is for the engine's token
 * count.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { parse } from "yaml";
import { initConfiguration } from "../../../src/config/init.ts";
import { engineAt } from "../../config/reading.ts";
import { refusalOf } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { configuration, has, modelOf, price, root, server } from "./place.ts";
import { pythonClients, pythonOutcomes } from "./python-clients.ts";
import { type Recorder, startRecorder } from "./recorder.ts";

const query = "Which river has locks?";
const documents = ["A canal has locks.", "Grüße 🌍!", "The weather in Oslo.", "The weather in Oslo."];
const isInfinity = server.engine === "infinity";
const isLlama = server.engine === "llama.cpp";
const isVllm = server.engine === "vllm";
const isTransformers = server.engine === "transformers";

let recorder: Recorder;
let service: Sluice;
let openai: OpenAI;

beforeAll(async () => {
  recorder = startRecorder(root);
  service = await startSluice({ config: configuration(recorder.root) });
  openai = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: service.key, maxRetries: 0 });
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await recorder?.stop();
}, 60_000);

interface Usage {
  prompt_tokens: number;
  completion_tokens?: number;
  total_tokens: number;
}

async function ask(path: string, body: object, headers: Record<string, string> = {}) {
  const response = await service.post(path, body, { headers });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return { response, text, exchange: recorder.take() };
}

async function direct(path: string, body: object): Promise<string> {
  const response = await fetch(root + path, {
    method: "POST",
    // llama.cpp closes idle connections without notice, so connections are not reused.
    keepalive: false,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return text;
}

/**
 * The values that the group of the pattern `form` captures, anywhere in the text: unparsed, but without the white space
 * that an engine may insert.
 */
const written = (text: string, form: RegExp) => [...text.matchAll(form)].map(([, value]) => value!.replace(/\s/g, ""));
const vectors = (text: string) => written(text, /"embedding":\s*(\[[^\]]*\]|"[^"]{20,}")/g);
const scores = (text: string) => written(text, /"relevance_score":\s*([-+.\deE]+)/g);

/** Checks that the request's record has the engine's token count, and that the charge is for that count. */
async function expectCharge(response: Response, said: Usage, told: Usage): Promise<void> {
  const { usage, cost } = await endedReceipt(service, requestIdOf(response));
  const tokens = told.prompt_tokens + (told.completion_tokens ?? 0);
  expect(nanosOf(cost.charged)).toBe(tokens * price);
  expect((usage?.input_tokens ?? 0) + (usage?.cached_input_tokens ?? 0)).toBe(told.prompt_tokens);
  if (isInfinity) {
    expect(usage?.source).toBe("estimated");
    expect(told.prompt_tokens).toBeLessThan(said.prompt_tokens);
    return;
  }
  expect(usage?.source).toBe("reported");
  expect(told.prompt_tokens).toBe(said.prompt_tokens);
  expect(told.completion_tokens ?? 0).toBe(said.completion_tokens ?? 0);
}

async function expectTooLong(path: string, body: object): Promise<void> {
  const response = await service.post(path, body);
  expect((await refusalOf(response)).slice(0, 2)).toEqual([400, "context_length_exceeded"]);
  expect(nanosOf((await endedReceipt(service, requestIdOf(response))).cost.charged)).toBe(0);
}

test(`${server.engine}: sluice init finds what its models are for`, async () => {
  const url = `${root}/v1`;
  const { yaml } = await initConfiguration({ engines: [engineAt(url)], fetch, nowSeconds: 1, check: async () => [] });
  const entries: { kind?: string; routes: { model: string }[] }[] = parse(yaml).models;
  const found = new Map(entries.map(({ kind = "chat", routes }) => [routes[0]!.model, kind]));
  // The tiny model for completions also has a chat template, so its kind is `chat`.
  for (const [operation, kind] of [
    ["embeddings", "embedding"],
    ["rerank", "rerank"],
    ["completions", "chat"],
  ] as const)
    if (has(operation)) expect([...found]).toContainEqual([server.models[operation]!, kind]);
});

describe.if(has("embeddings"))(`${server.engine}: embeddings`, () => {
  const path = "/v1/embeddings";
  const model = modelOf("embeddings");
  const name = server.models.embeddings;
  const inputs: Record<string, object> = {
    "a text": { input: documents[0] },
    texts: { input: documents },
    floats: { input: documents[0], encoding_format: "float" },
    "base64 of two": { input: documents.slice(0, 2), encoding_format: "base64" },
    "a user, whom the engine does not hear of": { input: documents[0], user: "somebody" },
    ...(isInfinity
      ? {}
      : {
          "token ids": { input: [7, 8, 9] },
          "lists of token ids": { input: [[7, 8, 9], [10]] },
        }),
  };
  for (const [what, body] of Object.entries(inputs))
    test(`${what}: the engine's digits, fields of the contract, the charge`, async () => {
      const { response, text, exchange } = await ask(path, { model, ...body });
      const plain = await direct(path, { model: name, ...body });
      expect(vectors(text)).toEqual(vectors(exchange.said));
      expect(vectors(text)).toEqual(vectors(plain));
      expect(vectors(text).length).toBeGreaterThan(0);
      const answer = JSON.parse(text) as { data: object[]; usage: Usage };
      expect(Object.keys(answer)).toEqual(["object", "data", "model", "usage"]);
      for (const one of answer.data) expect(Object.keys(one).sort()).toEqual(["embedding", "index", "object"]);
      expect(exchange.asked).toEqual({ ...body, user: undefined, model: name });
      await expectCharge(response, (JSON.parse(exchange.said) as { usage: Usage }).usage, answer.usage);
    });

  test("OpenAI's SDK for Node: floats and base64 are the same vectors", async () => {
    const packed = await openai.embeddings.create({ model, input: documents });
    expect(recorder.take().asked.encoding_format).toBe("base64");
    const floats = await openai.embeddings.create({ model, input: documents, encoding_format: "float" });
    const said = JSON.parse(recorder.take().said) as { data: { embedding: number[] }[] };
    expect(floats.data.map(({ embedding }) => embedding)).toEqual(said.data.map(({ embedding }) => embedding));
    const single = (list: readonly number[]) => [...new Float32Array(list)];
    expect(packed.data.map(({ embedding }) => single(embedding))).toEqual(
      floats.data.map(({ embedding }) => single(embedding)),
    );
  });

  test.each([
    ["Open WebUI", documents, () => ({ "X-OpenWebUI-User-Name": "Ann%20B", "X-OpenWebUI-User-Role": "user" })],
    ["Continue", documents.slice(0, 3), () => ({ "api-key": service.key })],
  ] as const)("the request of %s", async (_, input, headers) => {
    const { text, exchange } = await ask(path, { input, model }, headers());
    expect(vectors(text)).toEqual(vectors(exchange.said));
    expect(vectors(text)).toHaveLength(input.length);
  });

  test.skipIf(isInfinity)("a text that is too long is the client's error, and costs nothing", () =>
    expectTooLong(path, { model, input: ["hello", "word ".repeat(700)] }),
  );
});

describe.if(has("rerank"))(`${server.engine}: rerank`, () => {
  const model = modelOf("rerank");
  const name = server.models.rerank;
  const bodies: Record<string, { documents: (string | { text: string })[] } & Record<string, unknown>> = {
    texts: { query, documents },
    "the first two": { query, documents, top_n: 2 },
    "more than there are": { query, documents, top_n: 9 },
    "with the documents": { query, documents, return_documents: true },
    "without the documents": { query, documents, return_documents: false },
    objects: { query, documents: documents.map((text) => ({ text })), return_documents: true },
    "a cap for each": { query, documents, max_tokens_per_doc: 4 },
  };
  for (const path of ["/v1/rerank", "/v2/rerank"])
    for (const [what, body] of Object.entries(bodies))
      test(`${path}, ${what}: the engine's digits, fields of the contract, the charge`, async () => {
        const { response, text, exchange } = await ask(path, { model, ...body });
        expect(scores(text)).toEqual(scores(exchange.said));
        const plain = await direct("/v1/rerank", { model: name, ...body, documents });
        const [through, alone] = [scores(text), scores(plain)].map((list) => list.map(Number));
        expect(through).toHaveLength(alone!.length);
        // The seventh digit of vLLM's own scores differs from call to call.
        for (const [at, score] of through!.entries()) expect(score).toBeCloseTo(alone![at]!, isVllm ? 5 : 12);
        const answer = JSON.parse(text) as { results: { index: number; document?: object }[]; usage: Usage };
        expect(Object.keys(answer)).toEqual(["id", "object", "model", "results", "usage", "meta"]);
        for (const { index, document, ...others } of answer.results) {
          expect(Object.keys(others)).toEqual(["relevance_score"]);
          expect(document).toEqual(body.return_documents ? { text: documents[index] } : undefined);
        }
        const order = (results: { index: number }[]) => results.map(({ index }) => index);
        expect(order(answer.results)).toEqual(order(JSON.parse(exchange.said).results));
        await expectCharge(response, (JSON.parse(exchange.said) as { usage: Usage }).usage, answer.usage);
      });

  test.each([
    ["Open WebUI", { top_n: documents.length }, () => ({})],
    ["Continue", {}, () => ({ "x-api-key": service.key, accept: "application/json" })],
  ] as const)("the request of %s", async (_, more, headers) => {
    const { text, exchange } = await ask("/v1/rerank", { model, query, documents, ...more }, headers());
    expect(scores(text)).toEqual(scores(exchange.said));
    expect(scores(text)).toHaveLength(documents.length);
  });

  test.skipIf(isInfinity)("a document that is too long is the client's error, and costs nothing", () =>
    expectTooLong("/v1/rerank", { model, query, documents: ["hello", "word ".repeat(700)] }),
  );
});

interface Completion {
  choices: { index: number; text: string; logprobs: unknown; finish_reason: string | null }[];
  usage?: Usage | null;
}

describe.if(has("completions"))(`${server.engine}: completions`, () => {
  const path = "/v1/completions";
  const model = modelOf("completions");
  const name = server.models.completions;
  const plain = { temperature: 0, max_tokens: 8 };
  const prompts: Record<string, object> = {
    "a prompt": { prompt: "Say hello.", ...plain },
    "a list of one": { prompt: ["Say hello."], ...plain },
    ...(isTransformers ? {} : { "token ids": { prompt: [40, 41, 42], ...plain } }),
    ...(isVllm
      ? {
          "log probabilities": { prompt: "Say hello.", ...plain, logprobs: 2 },
          "an echo": { prompt: "Say hello.", ...plain, echo: true, logprobs: 1 },
        }
      : {}),
  };
  /**
   * The prompt in a form that each engine accepts: transformers' server accepts no list, so it gets only the first
   * prompt.
   */
  const asEngines = (body: object) => {
    const { prompt } = body as { prompt: unknown };
    return Array.isArray(prompt) && typeof prompt[0] === "string" ? { ...body, prompt: prompt[0] } : body;
  };
  for (const [what, body] of Object.entries(prompts)) {
    test(`${what}, whole: the engine's text, fields of the contract, the charge`, async () => {
      const { response, text, exchange } = await ask(path, { model, ...body });
      const said = JSON.parse(exchange.said) as Completion;
      const alone = JSON.parse(await direct(path, { model: name, ...asEngines(body) })) as Completion;
      const answer = JSON.parse(text) as Completion & { usage: Usage };
      expect(Object.keys(answer)).toEqual(["id", "object", "created", "model", "choices", "usage"]);
      expect(answer.choices).toHaveLength(1);
      const { text: ours, logprobs, finish_reason, index, ...others } = answer.choices[0]!;
      expect(others).toEqual({});
      expect(index).toBe(0);
      expect(ours).toBe(said.choices[0]!.text);
      expect(ours).toBe(alone.choices[0]!.text);
      expect(logprobs).toEqual(said.choices[0]!.logprobs ?? null);
      expect(finish_reason).toBe(said.choices[0]!.finish_reason);
      await expectCharge(response, said.usage!, answer.usage);
    });

    test.skipIf(what === "an echo" && !isVllm)(`${what}, streamed: the same, and one end`, async () => {
      const streamed = { stream: true, stream_options: { include_usage: true } };
      const { response, text } = await ask(path, { model, ...body, ...streamed });
      const whole = JSON.parse(await direct(path, { model: name, ...asEngines(body) })) as Completion;
      const events = text.split("\n\n").filter((event) => event.startsWith("data: "));
      expect(events.filter((event) => event === "data: [DONE]")).toHaveLength(1);
      expect(events.at(-1)).toBe("data: [DONE]");
      const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice(6)) as Completion);
      for (const chunk of chunks)
        expect(Object.keys(chunk).slice(0, 5)).toEqual(["id", "object", "created", "model", "choices"]);
      const choices = chunks.flatMap(({ choices }) => choices);
      for (const choice of choices)
        expect(Object.keys(choice).sort()).toEqual(["finish_reason", "index", "logprobs", "text"]);
      expect(choices.map(({ text: piece }) => piece).join("")).toBe(whole.choices[0]!.text);
      expect(choices.map(({ finish_reason }) => finish_reason).filter(Boolean)).toEqual([
        whole.choices[0]!.finish_reason,
      ]);
      await expectCharge(response, whole.usage!, chunks.at(-1)!.usage!);
    });
  }

  test("OpenAI's SDK for Node, streamed and whole", async () => {
    const body = { model, prompt: "Say hello.", ...plain };
    const whole = await openai.completions.create(body);
    const pieces: string[] = [];
    for await (const { choices } of await openai.completions.create({ ...body, stream: true }))
      pieces.push(choices[0]?.text ?? "");
    expect(pieces.join("")).toBe(whole.choices[0]!.text);
    expect(whole.usage?.completion_tokens).toBeGreaterThan(0);
  });

  test("Zed's request of a text between two others", async () => {
    const stop = ["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"];
    const prompt = "<|fim_prefix|>def add(<|fim_suffix|>return a + b<|fim_middle|>";
    const { text, exchange } = await ask(path, { model, prompt, max_tokens: 8, stop });
    expect(exchange.asked).toMatchObject({ prompt, stop });
    const answer = JSON.parse(text) as Completion & { id: string; object: string; created: number; model: string };
    expect(answer.choices[0]?.text).toBe((JSON.parse(exchange.said) as Completion).choices[0]!.text);
    expect(answer.usage).toMatchObject({ prompt_tokens: expect.any(Number), total_tokens: expect.any(Number) });
  });

  test("Zed's request with its own model, which has no stop sequences", async () => {
    await ask(path, { model, prompt: "Say hello.", max_tokens: 8, stop: [] });
  });

  // transformers fails on a stop sequence with letters that are not in the model's vocabulary.
  test.skipIf(isTransformers)("Continue's request for a template with many stop sequences", async () => {
    const fill = ["fim_prefix", "fim_middle", "fim_suffix", "fim_pad"];
    const marks = ["endoftext", ...fill, "repo_name", "file_sep", "im_start", "im_end"].map((mark) => `<|${mark}|>`);
    const stop = [...marks, "/src/", "#- coding: utf-8", "```"];
    const prompt = "<|fim_prefix|>a<|fim_suffix|>b";
    const body = { model, prompt, max_tokens: 8, temperature: 0.01, stream: true, stop };
    if (!isVllm) return void (await ask(path, body));
    // vLLM accepts at most four stop sequences.
    expect(await refusalOf(await service.post(path, body))).toEqual([400, "unsupported_feature", "stop"]);
  });

  test.skipIf(isTransformers)("a prompt that is too long is the client's error, and costs nothing", () =>
    expectTooLong(path, { model, prompt: "word ".repeat(70_000), max_tokens: 8 }),
  );

  test.skipIf(isLlama)("a suffix is refused by name", async () => {
    const response = await service.post(path, { model, prompt: "def add(", suffix: "return a + b", ...plain });
    expect(await refusalOf(response)).toEqual([400, "unsupported_feature", "suffix"]);
  });

  for (const stream of [false, true])
    test.if(isLlama)(`a suffix is filled in, ${stream ? "streamed" : "whole"}: /infill's text and count`, async () => {
      const { response, text, exchange } = await ask(path, {
        model,
        prompt: "def add(",
        suffix: "return a + b",
        ...plain,
        stream,
        ...(stream && { stream_options: { include_usage: true } }),
      });
      expect(exchange.path).toBe("/infill");
      const filled = JSON.parse(
        await direct("/infill", {
          input_prefix: "def add(",
          input_suffix: "return a + b",
          temperature: 0,
          n_predict: 8,
        }),
      ) as { content: string; tokens_evaluated: number; tokens_predicted: number };
      const events = stream ? text.split("\n\n").filter((event) => event.startsWith("data: {")) : [`data: ${text}`];
      const chunks = events.map((event) => JSON.parse(event.slice(6)) as Completion);
      expect(chunks.flatMap(({ choices }) => choices.map((choice) => choice.text)).join("")).toBe(filled.content);
      const usage = { prompt_tokens: filled.tokens_evaluated, completion_tokens: filled.tokens_predicted };
      await expectCharge(response, { ...usage, total_tokens: 0 }, chunks.at(-1)!.usage!);
    });
});

describe(`${server.engine}: clients for Python`, () => {
  let outcomes: Record<string, string> = {};
  beforeAll(async () => {
    outcomes = await pythonOutcomes({ url: service.url, key: service.key });
  }, 600_000);
  for (const client of pythonClients) test(client, () => expect(outcomes[client]).toBe("ok"));
});
