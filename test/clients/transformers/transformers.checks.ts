/**
 * What docs/engines.md says of `transformers serve`, held against a running one: the openai SDK in front of the service in
 * front of it. Its model knows the answers of model.py by heart.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { APIError, APIUserAbortError } from "openai";
import type { ChatCompletionMessageParam } from "openai/resources";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { type Engine, engineModel, startEngine } from "./server.ts";

const model = "acme/parrot";
const context_tokens = 2048;

let engine: Engine;
let service: Sluice;
let client: OpenAI;
beforeAll(async () => {
  engine = await startEngine();
  service = await startSluice({
    config: configTo(engine.url),
    secrets: [engineModel, "parrot@main", "canary-upstream", new URL(engine.url).host],
  });
  client = new OpenAI({
    baseURL: `${service.url}/v1`,
    apiKey: service.key,
    maxRetries: 0,
    fetch: (url, init) => service.fetch(String(url).slice(service.url.length), init),
  });
  // The first request loads the model.
  await client.chat.completions.create({ model, messages: says("Say hello.") });
}, 300_000);
afterAll(async () => {
  try {
    await service?.stop();
  } finally {
    await engine?.stop();
  }
}, 60_000);

function configTo(url: string): string {
  return `
upstreams:
  canary-upstream: { url: "${url}", protocol: openai-chat }
models:
  - id: ${model}
    owned_by: acme
    created: 1790000000
    context_window: ${context_tokens}
    capabilities: [tools, parallel_tools, reasoning]
    prices: { input: 1, cached_input: 1, cache_write: 1, output: 1 }
    extra_params: [top_k]
    routes: [{ upstream: canary-upstream, model: ${engineModel} }]
plans: { unlimited: {} }
`;
}

const says = (content: string): ChatCompletionMessageParam[] => [{ role: "user", content }];
const hello = "Grüße 🌍! Hello there.";
const numbers = "one two three four five six seven eight nine ten";
const tools = ["weather", "time"].map((name) => ({ type: "function" as const, function: { name } }));
/** Both ways of the service to ask it: whole, because of the small cap, and streamed. */
const caps = { whole: 256, streamed: 1000 };
/** The end of a turn is never chosen, so only the cap ends it. Whole numbers it would refuse (docs/engines.md). */
const endless = { "2": -99.5 };

async function refusalOf(promise: Promise<unknown>): Promise<APIError> {
  const refused = await promise.then(
    () => undefined,
    (error) => error,
  );
  if (!(refused instanceof APIError)) throw new Error(`expected a refusal, got ${refused}`);
  expect(refused.requestID).toMatch(/^req_/);
  return refused;
}

describe("what works as with any engine", () => {
  test("the list is the service's own", async () => {
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual([model]);
  });

  for (const [way, max_tokens] of Object.entries(caps)) {
    test(`an answer and its usage, asked for ${way}`, async () => {
      const answer = await client.chat.completions.create({ model, max_tokens, messages: says("Say hello.") });
      expect(answer.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: hello } });
      expect(answer.usage).toMatchObject({ prompt_tokens: 22, completion_tokens: 24, total_tokens: 46 });
      expect(answer.model).toBe(model);
    });

    test(`two parallel calls and their results, asked for ${way}`, async () => {
      const asked = says("Weather and time in Oslo?");
      const first = await client.chat.completions.create({ model, max_tokens, messages: asked, tools });
      expect(first.choices[0]).toMatchObject({ finish_reason: "tool_calls", message: { content: null } });
      const calls = (first.choices[0]?.message.tool_calls ?? []).filter((call) => call.type === "function");
      expect(calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)])).toEqual([
        ["weather", { city: "Oslo" }],
        ["time", { city: "Oslo" }],
      ]);
      expect(new Set(calls.map((call) => call.id)).size).toBe(2);
      const results = calls.map((call, index) => ({
        role: "tool" as const,
        tool_call_id: call.id,
        content: ["rain", "noon"][index] ?? "",
      }));
      const messages = [...asked, first.choices[0]!.message, ...results];
      const second = await client.chat.completions.create({ model, max_tokens, messages, tools });
      expect(second.choices[0]).toMatchObject({
        finish_reason: "stop",
        message: { content: "It rains in Oslo, and it is noon." },
      });
    });

    test(`thoughts beside the answer, asked for ${way}`, async () => {
      const answer = await client.chat.completions.create({ model, max_tokens, messages: says("Think, then answer.") });
      const message = answer.choices[0]?.message as { content: string; reasoning_content?: string };
      expect(message.content.trim()).toBe("Four.");
      expect(message.reasoning_content?.trim()).toBe("two and two make");
    });
  }

  test("a stream, with usage at its end though the engine sends it earlier, and [DONE] though the engine does not", async () => {
    const ask = { model, messages: says("Say hello."), stream: true, stream_options: { include_usage: true } } as const;
    const chunks = await Array.fromAsync(await client.chat.completions.create(ask));
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(hello);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 22, completion_tokens: 24 } });
    const raw = await service.post("/v1/chat/completions", ask);
    expect((await raw.text()).endsWith("data: [DONE]\n\n")).toBe(true);
  });

  test("the SDK's helper accumulates calls and text", async () => {
    const stream = client.chat.completions.stream({ model, messages: says("Weather and time in Oslo?"), tools });
    expect((await stream.finalChatCompletion()).choices[0]?.message.tool_calls).toHaveLength(2);
    expect(await client.chat.completions.stream({ model, messages: says("Say hello.") }).finalContent()).toBe(hello);
  });

  test("a system message is heard; max_tokens ends with length", async () => {
    const brief = await client.chat.completions.create({
      model,
      messages: [{ role: "developer", content: "Be brief." }, ...says("Say hello.")],
    });
    expect(brief.choices[0]?.message.content).toBe("Hi.");
    const short = await client.chat.completions.create({ model, messages: says("Count."), max_tokens: 3 });
    expect(short.choices[0]).toMatchObject({ finish_reason: "length", message: { content: "one" } });
    expect(short.usage?.completion_tokens).toBe(3);
  });
});

describe("a client that leaves", () => {
  // It answers one request at a time: whoever comes next waits until the engine has stopped.
  const answersNext = async () => {
    const started = performance.now();
    await client.chat.completions.create({ model, messages: says("Say hello."), max_tokens: 100 });
    return performance.now() - started;
  };
  const long = { model, messages: says("Count."), logit_bias: endless };
  const whole_ms = async (max_tokens: number) => {
    const started = performance.now();
    const answer = await client.chat.completions.create({ ...long, max_tokens });
    expect(answer.usage?.completion_tokens).toBe(max_tokens);
    return performance.now() - started;
  };

  test("a stream, and an answer that the service reads as a stream, stop the engine", async () => {
    const uninterrupted = await whole_ms(1900);
    let chunks = 0;
    const plain = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: service.key, maxRetries: 0 });
    for await (const _ of await plain.chat.completions.create({ ...long, max_tokens: 1900, stream: true }))
      if (++chunks === 20) break;
    expect(await answersNext()).toBeLessThan(uninterrupted / 2);

    const abort = new AbortController();
    const pending = plain.chat.completions.create({ ...long, max_tokens: 1900 }, { signal: abort.signal });
    setTimeout(() => abort.abort(), uninterrupted / 10);
    expect(await pending.catch((error) => error)).toBeInstanceOf(APIUserAbortError);
    expect(await answersNext()).toBeLessThan(uninterrupted / 2);
  }, 120_000);

  test("only at the engine itself, an answer that is not streamed goes on without its client", async () => {
    const uninterrupted = await whole_ms(1900);
    const abort = new AbortController();
    const { messages, logit_bias } = long;
    const pending = fetch(`${engine.url}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: engineModel, messages, logit_bias, max_tokens: 1900 }),
      signal: abort.signal,
    });
    setTimeout(() => abort.abort(), uninterrupted / 10);
    expect(await pending.catch((error) => error.name)).toBe("AbortError");
    expect(await answersNext()).toBeGreaterThan(uninterrupted / 2);
  }, 120_000);
});

describe("what it refuses is an error of the service, which tells nothing of it", () => {
  test("a field that it does not know (422)", async () => {
    const error = await refusalOf(
      client.chat.completions.create({ model, messages: says("Count."), top_k: 5 } as never),
    );
    expect(error).toMatchObject({ status: 400, code: "invalid_value", param: null });
  });

  test("what breaks it before the first word, streamed (200, then an error) and not (500)", async () => {
    for (const stream of [false, true]) {
      const broken = { model, messages: says("Count."), frequency_penalty: -1.5, max_tokens: 8, stream };
      expect(await refusalOf(client.chat.completions.create(broken))).toMatchObject({
        status: 503,
        code: "upstream_unavailable",
      });
    }
  });

  test("a whole number in logit_bias", async () => {
    const biased = { model, messages: says("Count."), logit_bias: { "2": -100 }, stream: true } as const;
    expect(await refusalOf(client.chat.completions.create(biased))).toMatchObject({ status: 503 });
  });

  test("a replayed call whose arguments are no JSON; none at all are an empty object", async () => {
    const replayed = (args: string): ChatCompletionMessageParam[] => [
      ...says("Weather and time in Oslo?"),
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: args } }],
      },
      { role: "tool", tool_call_id: "call_1", content: "rain" },
    ];
    const cut = client.chat.completions.create({ model, messages: replayed('{"ci'), tools });
    expect(await refusalOf(cut)).toMatchObject({ status: 503, code: "upstream_unavailable" });
    const none = await client.chat.completions.create({ model, messages: replayed(""), tools, max_tokens: 4 });
    expect(none.choices[0]?.finish_reason).toBeString();
  });

  test("input that is far too long is refused by the service, not by the engine", async () => {
    const far = client.chat.completions.create({ model, messages: says("Weather and time. ".repeat(4000)) });
    expect(await refusalOf(far)).toMatchObject({ status: 400, code: "context_length_exceeded" });
  });
});

describe("what it does otherwise", () => {
  test("a stop sequence ends the answer, and stands in it", async () => {
    for (const max_tokens of Object.values(caps)) {
      const answer = await client.chat.completions.create({
        model,
        max_tokens,
        messages: says("Count."),
        stop: "three",
      });
      expect(answer.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "one two three" } });
    }
  });

  test("it passes over tool_choice: told to call nothing, it calls", async () => {
    const asked = { model, messages: says("Weather and time in Oslo?"), tools, tool_choice: "none" } as const;
    expect((await client.chat.completions.create(asked)).choices[0]?.message.tool_calls).toHaveLength(2);
  });

  test("input that is a little too long is answered all the same", async () => {
    const long = { model, messages: says("Weather and time. ".repeat(250)), max_tokens: 4 };
    const answer = await client.chat.completions.create(long);
    expect(answer.usage?.prompt_tokens).toBeGreaterThan(context_tokens);
  });
});

describe("set up from the engine itself", () => {
  test("sluice init writes a file that serves it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-init-"));
    const file = join(folder, "sluice.yaml");
    try {
      expect(await service.json("init", "--upstream", engine.url.replace(/\/v1$/, ""), "--output", file)).toEqual({
        file,
        models: [engineModel],
      });
      const config = readFileSync(file, "utf8");
      expect(config).toContain("# a guess: the engine does not report it");
      const drafted = await startSluice({ config });
      try {
        const body = { model: engineModel, messages: says("Say hello.") };
        const answer = (await (await drafted.post("/v1/chat/completions", body)).json()) as OpenAI.ChatCompletion;
        expect(answer.choices[0]?.message.content).toBe(hello);
      } finally {
        await drafted.stop();
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 120_000);

  test("SLUICE_UPSTREAM_URL and _MODEL serve every model of the default catalog by it", async () => {
    const env = { SLUICE_UPSTREAM_URL: engine.url, SLUICE_UPSTREAM_MODEL: engineModel };
    const everything = await startSluice({ env, secrets: [engineModel, new URL(engine.url).host] });
    try {
      const { data } = (await (await everything.fetch("/v1/models")).json()) as { data: { id: string }[] };
      expect(data.length).toBe(31);
      const body = { model: data[0]?.id, messages: says("Count.") };
      const answer = (await (await everything.post("/v1/chat/completions", body)).json()) as OpenAI.ChatCompletion;
      expect(answer).toMatchObject({ model: data[0]?.id, choices: [{ message: { content: numbers } }] });
    } finally {
      await everything.stop();
    }
  }, 120_000);
});
