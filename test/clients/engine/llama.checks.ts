/**
 * llama.cpp's own server behind the service, used with the openai SDK. Its model is random, so no check depends on the
 * text: only on how the engine treats requests, limits and errors. Run by `npm run test:clients -- engine`. Tool calls
 * and reasoning are checked with a trained model in engines.checks.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI, { BadRequestError, InternalServerError } from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import type { ChatCompletionMessageParam } from "openai/resources";
import { z } from "zod";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { checkedFetch, errorOf } from "../sdk.ts";
import { engineKey, engineModel, type Llama, startRandom } from "./llama.ts";

/**
 * The token ID of a special token of the model. `place` is the token's index in the list in which model.py adds them.
 */
const mark = (place: number) => String(3 + 256 + place);
const [endOfTurn, endOfThought] = [mark(1), mark(3)];

const { LLAMA_MODEL: randomModel = "" } = process.env;
if (!randomModel) throw new Error("Start this by: npm run test:clients -- engine");

const plain = "acme/random";
const thinker = "acme/thinker";
/** A model whose configured context window is a million tokens, more than the engine accepts. */
const boastful = "acme/boastful";
const wrongKey = "acme/wrong-key";
const upstreams = ["canary-plain", "canary-thinking", "canary-refused"] as const;

const all = "[tools, parallel_tools, vision, reasoning, structured_output, logprobs]";
const entry = (id: string, context: number, upstream: string) => `
  - { id: ${id}, owned_by: acme, created: 1790000000, context_window: ${context}, max_output_tokens: 16384,
      capabilities: ${all}, prices: { input: 0.001, cached_input: 0.001, cache_write: 0.001, output: 0.001 },
      routes: [{ upstream: ${upstream}, model: ${engineModel} }] }`;
const configFor = (plainUrl: string, thinkingUrl: string) => `
upstreams:
  ${upstreams[0]}: { url: "${plainUrl}", protocol: openai-chat, api_key: "\${ENGINE_KEY}" }
  ${upstreams[1]}: { url: "${thinkingUrl}", protocol: openai-chat, api_key: "\${ENGINE_KEY}" }
  ${upstreams[2]}: { url: "${plainUrl}", protocol: openai-chat, api_key: "wrong-key-of-the-operator" }
metering: { currency: USD }
models:${entry(plain, 16384, upstreams[0])}${entry(thinker, 16384, upstreams[1])}${entry(boastful, 1_000_000, upstreams[0])}${entry(wrongKey, 16384, upstreams[2])}
plans: { unlimited: {} }
`;

/**
 * Biases that keep the model from choosing its two end tokens (model.py), so a response is as long as its token limit.
 */
const endless = { 2: -100, 260: -100 };

let engine: Llama;
let thinking: Llama;
let service: Sluice;
let client: OpenAI;
beforeAll(async () => {
  [engine, thinking] = await Promise.all([
    startRandom(randomModel, "plain.jinja"),
    startRandom(randomModel, "thinking.jinja", 4096),
  ]);
  service = await startSluice({
    config: configFor(engine.url, thinking.url),
    env: { ENGINE_KEY: engineKey },
    secrets: [...[engine, thinking].flatMap(secretsOf), "wrong-key-of-the-operator", "jinja", "mmproj"],
    operatorsWords: [...upstreams],
  });
  client = clientOf(service);
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await Promise.all([engine?.stop(), thinking?.stop()]);
}, 60_000);

const secretsOf = ({ url }: Llama) => [engineModel, engineKey, new URL(url).host];

function clientOf(sluice: Sluice): OpenAI {
  return new OpenAI({ baseURL: `${sluice.url}/v1`, apiKey: sluice.key, maxRetries: 0, fetch: checkedFetch(sluice) });
}

const hello: ChatCompletionMessageParam[] = [{ role: "user", content: "hello there" }];
/** A request whose reasoning ends early, because the token that ends it is made likely. */
const thoughtful = { model: thinker, temperature: 1, seed: 1, max_tokens: 80, logit_bias: { [endOfThought]: 4 } };
const base = { model: plain, messages: hello, temperature: 0, max_tokens: 24 };

describe("list, chat, stream, usage", () => {
  test("the catalog's models are listed, and nothing of the engine's", async () => {
    const ids = (await Array.fromAsync(client.models.list())).map(({ id }) => id);
    expect(ids).toEqual([plain, thinker, boastful, wrongKey]);
    expect((await client.models.retrieve(plain)).owned_by).toBe("acme");
  });

  test("max_tokens and max_completion_tokens are the engine's own limit", async () => {
    const { max_tokens: _, ...unlimited } = base;
    for (const limit of [{ max_tokens: 3 }, { max_completion_tokens: 3 }]) {
      const completion = await client.chat.completions.create({ ...unlimited, ...limit });
      expect([completion.usage?.completion_tokens, completion.choices[0]?.finish_reason]).toEqual([3, "length"]);
    }
  });

  test("streamed and whole, asked of the engine either way, are the same answer", async () => {
    // For an unstreamed response, the service asks the engine without streaming up to a certain token limit, and with
    // streaming above it. One of these two limits is below that threshold, the other above.
    for (const max_tokens of [24, 600]) {
      const ask = { ...base, max_tokens, logit_bias: { [endOfTurn]: -100 } };
      const whole = await client.chat.completions.create(ask);
      const stream = client.chat.completions.stream({ ...ask, stream_options: { include_usage: true } });
      const streamed = await stream.finalChatCompletion();
      expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]!.message.content);
      expect(streamed.usage?.completion_tokens).toBe(max_tokens);
      expect(whole.usage?.completion_tokens).toBe(max_tokens);
    }
  });

  test("tokens of a prompt that the engine had cached are told apart", async () => {
    const messages: ChatCompletionMessageParam[] = [
      { role: "user", content: `cached ${"words and words ".repeat(20)}` },
    ];
    await client.chat.completions.create({ ...base, messages });
    const again = await client.chat.completions.create({ ...base, messages });
    expect(again.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan(100);
    expect(again.usage!.prompt_tokens).toBeGreaterThan(again.usage!.prompt_tokens_details!.cached_tokens!);
  });

  test("stop ends before the word, and an end of turn is stop", async () => {
    const whole = (await client.chat.completions.create(base)).choices[0]!.message.content!;
    const word = whole.trim().split(" ")[5]!;
    for (const stream of [false, true]) {
      const helper = client.chat.completions.stream({ ...base, stop: word });
      const choice = stream
        ? (await helper.finalChatCompletion()).choices[0]!
        : (await client.chat.completions.create({ ...base, stop: [word] })).choices[0]!;
      expect(choice.finish_reason).toBe("stop");
      expect(choice.message.content!.trim()).toBe(whole.slice(0, whole.indexOf(word)).trim());
    }
    const ended = await client.chat.completions.create({ ...base, logit_bias: { [endOfTurn]: 100 } });
    expect(ended.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "" } });
  });

  test("characters of several tokens arrive whole, streamed too", async () => {
    const bytes = Object.fromEntries([0xe2, 0x82, 0xac].map((byte) => [String(3 + byte), 10]));
    const ask = { ...base, temperature: 1, seed: 4, max_tokens: 200, logit_bias: bytes };
    let text = "";
    for await (const chunk of await client.chat.completions.create({ ...ask, stream: true }))
      text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toContain("€");
    expect((await client.chat.completions.create(ask)).choices[0]?.message.content).toContain("€");
  });

  test("a hundred streams, one after the other and together, come whole: it closes its connections after each", async () => {
    const one = async () => {
      const chunks = await Array.fromAsync(
        await client.chat.completions.create({ ...base, max_tokens: 3, stream: true }),
      );
      return chunks.at(-1)?.choices[0]?.finish_reason;
    };
    const ends: unknown[] = [];
    for (let round = 0; round < 20; round += 1) ends.push(await one(), ...(await Promise.all([1, 2, 3, 4].map(one))));
    expect(ends).toEqual(Array(100).fill("length"));
  }, 60_000);
});

describe("log probabilities", () => {
  const ask = { ...base, max_tokens: 4, logprobs: true };

  test("as many alternatives as were asked for, streamed and not; none unasked", async () => {
    for (const count of [0, 1, 5]) {
      const request = { ...ask, ...(count > 0 ? { top_logprobs: count } : {}) };
      const whole = (await client.chat.completions.create(request)).choices[0]!;
      const streamed = (await client.chat.completions.stream(request).finalChatCompletion()).choices[0]!;
      for (const { logprobs, message } of [whole, streamed]) {
        expect(logprobs?.content?.map((token) => token.top_logprobs.length)).toEqual(Array(4).fill(count));
        expect(logprobs?.content?.map((token) => token.token).join("")).toBe(message.content ?? "");
      }
    }
  });

  test("with tools: the engine refuses them streamed, and gives them whole", async () => {
    const tools = [zodFunction({ name: "time", parameters: z.object({}) })];
    const whole = await client.chat.completions.create({ ...ask, tools });
    expect(whole.choices[0]?.logprobs?.content).toHaveLength(4);
    const streamed = client.chat.completions.create({ ...ask, tools, stream: true });
    expect(await errorOf(streamed)).toMatchObject({ status: 400, code: "invalid_value" });
  });
});

describe("reasoning", () => {
  test("comes beside the text, streamed and not; none turns it off", async () => {
    const ask = { ...base, ...thoughtful };
    const message = (await client.chat.completions.create(ask)).choices[0]!.message as { reasoning_content?: string };
    expect(message.reasoning_content?.length).toBeGreaterThan(5);
    let thought = "";
    for await (const chunk of await client.chat.completions.create({ ...ask, stream: true }))
      thought += (chunk.choices[0]?.delta as { reasoning_content?: string })?.reasoning_content ?? "";
    expect(thought).toBe(message.reasoning_content!);
    const without = await client.chat.completions.create({ ...ask, reasoning_effort: "none" });
    expect(without.choices[0]?.message).not.toHaveProperty("reasoning_content");
  });
});

describe("structured output", () => {
  const Answer = z.object({ sure: z.boolean(), day: z.enum(["Friday", "Saturday"]) });
  const ask = { ...base, max_tokens: 400, response_format: zodResponseFormat(Answer, "answer") };

  test("by parse and by stream, from a model that knows no JSON", async () => {
    expect(Answer.parse((await client.chat.completions.parse(ask)).choices[0]?.message.parsed)).toBeTruthy();
    const streamed = await client.chat.completions.stream(ask).finalChatCompletion();
    expect(Answer.parse(streamed.choices[0]?.message.parsed)).toBeTruthy();
  });

  test("a schema that the engine cannot follow is the caller's to change", async () => {
    const schema = { type: "object", properties: { a: { type: "string", pattern: "(?<=x)y" } }, required: ["a"] };
    const response_format = { type: "json_schema" as const, json_schema: { name: "a", schema } };
    const outcome = await client.chat.completions.create({ ...ask, response_format }).catch((error: unknown) => error);
    if (outcome instanceof Error) expect(outcome).toBeInstanceOf(BadRequestError);
  });
});

describe("tools", () => {
  const tools = ["weather", "time"].map((name) => zodFunction({ name, parameters: z.object({ city: z.string() }) }));

  test("none calls nothing", async () => {
    const completion = await client.chat.completions.create({ ...base, tools, tool_choice: "none" });
    expect(completion.choices[0]?.message.tool_calls).toBeUndefined();
  });

  test("a replayed call without arguments is taken, and one that is no JSON refused, not tried again", async () => {
    const replayed = (written: string): ChatCompletionMessageParam[] => [
      ...hello,
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "a", type: "function", function: { name: "time", arguments: written } }],
      },
      { role: "tool", tool_call_id: "a", content: "late" },
    ];
    const taken = await client.chat.completions.create({ ...base, tools, messages: replayed("") });
    expect(taken.object).toBe("chat.completion");
    const refused = client.chat.completions.create({ ...base, tools, messages: replayed('{"city":') });
    expect(await errorOf(refused)).toMatchObject({ status: 400, code: "invalid_value", param: "messages" });
  });
});

describe("a client that leaves stops the engine within a second", () => {
  const long = { ...base, max_tokens: 15_000, logit_bias: endless };
  for (const stream of [true, false]) {
    test(stream ? "streaming" : "waiting for a whole answer", async () => {
      const abort = new AbortController();
      // A client that uses the SDK's own fetch, so that no test code is between it and the socket.
      const plainClient = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: service.key, maxRetries: 0 });
      const pending = plainClient.chat.completions.create({ ...long, stream }, { signal: abort.signal });
      const left = pending.then(
        () => undefined,
        () => undefined,
      );
      const before = await engine.tokens();
      await until(engine.isBusy, 5000, "the engine to begin");
      abort.abort();
      await until(async () => !(await engine.isBusy()), 1000, "the engine to stop");
      await left;
      expect((await engine.tokens()) - before).toBeLessThan(long.max_tokens);
    });
  }
});

describe("errors", () => {
  test("an over-long prompt is context_length_exceeded, by the engine's word, streamed and not", async () => {
    const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "words ".repeat(20_000) }];
    for (const stream of [false, true]) {
      const error = await errorOf(client.chat.completions.create({ ...base, model: boastful, messages, stream }));
      expect(error).toBeInstanceOf(BadRequestError);
      expect(error).toMatchObject({ status: 400, code: "context_length_exceeded", param: "messages" });
    }
  });

  test("a context that fills up while generating ends with length", async () => {
    const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "words ".repeat(300) }];
    const ask = { ...base, model: thinker, messages, max_tokens: 10_000, logit_bias: endless };
    const { choices, usage } = await client.chat.completions.create(ask);
    expect(choices[0]?.finish_reason).toBe("length");
    expect(usage?.total_tokens).toBeLessThanOrEqual(2048);
  });

  test("a template that refuses the turns is the caller's to change", async () => {
    const messages: ChatCompletionMessageParam[] = [...hello, { role: "system", content: "be brief" }, ...hello];
    const error = await errorOf(client.chat.completions.create({ ...base, model: thinker, messages }));
    expect(error).toMatchObject({ status: 400, code: "invalid_value" });
  });

  test("an image to a model that has no eyes, whatever the catalog says", async () => {
    const url = "data:image/png;base64,iVBORw0KGgo=";
    const messages: ChatCompletionMessageParam[] = [
      { role: "user", content: [{ type: "image_url", image_url: { url } }] },
    ];
    const error = await errorOf(client.chat.completions.create({ ...base, messages }));
    expect(error).toMatchObject({ status: 400, code: "invalid_value", param: "messages" });
  });

  test("a key that the engine refuses is the operator's, not the caller's", async () => {
    const error = await errorOf(client.chat.completions.create({ ...base, model: wrongKey }));
    expect(error).toBeInstanceOf(InternalServerError);
    expect(error).toMatchObject({ status: 503, code: "upstream_unavailable" });
  });
});

describe("set up in a minute", () => {
  test("SLUICE_UPSTREAM_URL alone sends every model there; init writes a file that serves", async () => {
    const env = { SLUICE_UPSTREAM_URL: engine.url, SLUICE_UPSTREAM_KEY: engineKey };
    const byVariables = await startSluice({ env, secrets: secretsOf(engine) });
    const written = join(byVariables.dataDir, "..", "from-init.yaml");
    let yaml: string;
    try {
      const [first] = await Array.fromAsync(clientOf(byVariables).models.list());
      const completion = await clientOf(byVariables).chat.completions.create({ ...base, model: first!.id });
      expect(completion).toMatchObject({ model: first!.id, usage: { completion_tokens: 24 } });
      const init = await byVariables.cli("init", "--upstream", engine.url, "--output", written);
      expect(init).toMatchObject({ code: 0, stderr: "" });
      yaml = readFileSync(written, "utf8");
    } finally {
      await byVariables.stop();
    }
    expect(yaml).not.toContain(engineKey);
    expect(yaml).toContain("context_window: 16384");
    expect(yaml).toContain("capabilities: [tools, parallel_tools, structured_output, logprobs]");
    const byFile = await startSluice({ config: yaml, env: { SLUICE_UPSTREAM_KEY: engineKey } });
    try {
      const [model] = await Array.fromAsync(clientOf(byFile).models.list());
      const completion = await clientOf(byFile).chat.completions.create({ ...base, model: model!.id });
      expect(completion).toMatchObject({ model: model!.id, usage: { completion_tokens: 24 } });
    } finally {
      await byFile.stop();
    }
  }, 60_000);
});

describe("an engine that dies", () => {
  test("in the middle of a stream is an error after what came, and then 503 until it is back", async () => {
    let chunks = 0;
    const error = await errorOf(
      (async () => {
        const body = { ...base, model: thinker, max_tokens: 15_000, logit_bias: endless, stream: true as const };
        for await (const chunk of await client.chat.completions.create(body)) {
          expect(chunk.choices[0]?.finish_reason).toBeNull();
          if (++chunks === 5) void thinking.stop();
        }
      })(),
    );
    expect(error).toMatchObject({ status: undefined, code: "upstream_unavailable" });
    const next = await errorOf(client.chat.completions.create({ ...base, model: thinker }));
    expect(next).toMatchObject({ status: 503, code: "upstream_unavailable" });
  });
});
