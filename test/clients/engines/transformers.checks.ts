/**
 * Checks the statements of docs/engines.md about `transformers serve` on a running one, with the openai SDK, through
 * the service. The checks for every engine are in engines.checks.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { APIUserAbortError } from "openai";
import type { ChatCompletionMessageParam } from "openai/resources";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { checkedFetch, errorOf } from "../sdk.ts";
import { hubName } from "./models.ts";

const { REAL_ENGINE_ROOT: root = "" } = process.env;
if (!root) throw new Error("Start this by: npm run test:clients -- transformers");

const url = `${root}/v1`;
const model = "acme/tiny";
const context_tokens = 2048;
const hello = "Grüße 🌍! Hello there.";

let service: Sluice;
let client: OpenAI;
/** A client whose responses are not checked against the contract, because that check reads a stream to its end. */
let plain: OpenAI;
beforeAll(async () => {
  const config = `
upstreams:
  canary-upstream: { url: "${url}", protocol: openai-chat, dialect: transformers }
metering: { currency: USD }
models:
  - id: ${model}
    owned_by: acme
    created: 1790000000
    context_window: ${context_tokens}
    capabilities: [tools, parallel_tools, reasoning]
    prices: { input: 0.001, cached_input: 0.001, cache_write: 0.001, output: 0.001 }
    extra_params: [top_k]
    routes: [{ upstream: canary-upstream, model: ${hubName} }]
plans: { unlimited: {} }
`;
  service = await startSluice({ config, operatorsWords: [hubName, "tiny@main", "canary-upstream", new URL(url).host] });
  const fetch = checkedFetch(service);
  client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: service.key, maxRetries: 0, fetch });
  plain = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: service.key, maxRetries: 0 });
}, 300_000);
afterAll(() => service?.stop(), 60_000);

const says = (content: string): ChatCompletionMessageParam[] => [{ role: "user", content }];
const exact = { model, temperature: 0 } as const;
const tools = ["weather", "time"].map((name) => ({ type: "function" as const, function: { name } }));
/**
 * Limits on the output tokens for both ways in which the service sends requests to the engine: without streaming,
 * because the limit is small, and with streaming.
 */
const caps = { whole: 256, streamed: 1000 };
/**
 * A bias that keeps the model from choosing its end token, so only the token limit ends the response. The engine would
 * refuse an integer here.
 */
const endless = { "2": -99.5 };

test("a stream has its usage at the end and [DONE], though the engine sends neither so", async () => {
  const ask = {
    ...exact,
    messages: says("Say hello."),
    stream: true,
    stream_options: { include_usage: true },
  } as const;
  const chunks = await Array.fromAsync(await client.chat.completions.create(ask));
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 30 } });
  const raw = await service.post("/v1/chat/completions", ask);
  expect((await raw.text()).endsWith("data: [DONE]\n\n")).toBe(true);
});

describe("a client that leaves", () => {
  // The engine serves one request at a time: the next client waits until the engine has stopped the previous response.
  const answersNext = async () => {
    const started = performance.now();
    await client.chat.completions.create({ ...exact, messages: says("Say hello."), max_tokens: 100 });
    return performance.now() - started;
  };
  const tokens = 1900;
  const long = { ...exact, messages: says("Count."), logit_bias: endless, max_tokens: tokens };
  const whole_ms = async () => {
    const started = performance.now();
    const answer = await client.chat.completions.create(long);
    expect(answer.usage?.completion_tokens).toBe(tokens);
    return performance.now() - started;
  };

  test("a stream, and an answer that the service reads as a stream, stop the engine", async () => {
    const uninterrupted = await whole_ms();
    let chunks = 0;
    for await (const _ of await plain.chat.completions.create({ ...long, stream: true })) if (++chunks === 20) break;
    expect(await answersNext()).toBeLessThan(uninterrupted / 2);
    const abort = new AbortController();
    const pending = plain.chat.completions.create(long, { signal: abort.signal });
    setTimeout(() => abort.abort(), uninterrupted / 10);
    expect(await pending.catch((error) => error)).toBeInstanceOf(APIUserAbortError);
    expect(await answersNext()).toBeLessThan(uninterrupted / 2);
  }, 120_000);

  test("only at the engine itself, an answer that is not streamed goes on without its client", async () => {
    const asked = (signal?: AbortSignal) =>
      fetch(`${url}/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...long, model: hubName }),
        ...(signal && { signal }),
      }).then((answer) => answer.text());
    const started = performance.now();
    await asked();
    const uninterrupted = performance.now() - started;
    const abort = new AbortController();
    const pending = asked(abort.signal);
    setTimeout(() => abort.abort(), uninterrupted / 10);
    expect(await pending.catch((error) => error.name)).toBe("AbortError");
    expect(await answersNext()).toBeGreaterThan(uninterrupted / 2);
  }, 120_000);
});

describe("what it refuses is an error of the service, which tells nothing of it", () => {
  test("a field that it does not know (422)", async () => {
    const error = await errorOf(
      client.chat.completions.create({ ...exact, messages: says("Count."), top_k: 5 } as never),
    );
    expect(error).toMatchObject({ status: 400, code: "invalid_value", param: null });
  });

  test("what breaks it before the first word, streamed (200, then an error) and not (500)", async () => {
    for (const stream of [false, true]) {
      const broken = { ...exact, messages: says("Count."), frequency_penalty: -1.5, max_tokens: 8, stream };
      expect(await errorOf(client.chat.completions.create(broken))).toMatchObject({
        status: 503,
        code: "upstream_unavailable",
      });
    }
  });

  test("a whole number in logit_bias", async () => {
    const biased = { ...exact, messages: says("Count."), logit_bias: { "2": -100 }, stream: true } as const;
    expect(await errorOf(client.chat.completions.create(biased))).toMatchObject({ status: 503 });
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
    const cut = client.chat.completions.create({ ...exact, messages: replayed('{"ci'), tools });
    expect(await errorOf(cut)).toMatchObject({ status: 503, code: "upstream_unavailable" });
    const none = await client.chat.completions.create({ ...exact, messages: replayed(""), tools, max_tokens: 4 });
    expect(none.choices[0]?.finish_reason).toBeString();
  });

  test("input that is far too long is refused by the service, not by the engine", async () => {
    const far = client.chat.completions.create({ ...exact, messages: says("Weather and time. ".repeat(4000)) });
    expect(await errorOf(far)).toMatchObject({ status: 400, code: "context_length_exceeded" });
  });
});

describe("what it does otherwise", () => {
  test("a stop sequence ends the answer, and stands in it", async () => {
    for (const max_tokens of Object.values(caps)) {
      const asked = { ...exact, max_tokens, messages: says("Count."), stop: "three" };
      const { choices } = await client.chat.completions.create(asked);
      expect(choices[0]?.finish_reason).toBe("stop");
      expect(choices[0]?.message.content?.trim()).toBe("one two three");
    }
  });

  test("input that is a little too long is answered all the same", async () => {
    // The token that begins a tool call is suppressed, because for a call that the token limit cuts off, the engine
    // returns 500.
    const messages = says("Weather and time. ".repeat(550));
    const long = { ...exact, messages, max_tokens: 4, logit_bias: { "2002": -99.5 } };
    const answer = await client.chat.completions.create(long);
    expect(answer.usage?.prompt_tokens).toBeGreaterThan(context_tokens);
  });

  test("a replayed thought does not reach it, and the log says so once", async () => {
    const messages: object[] = [
      ...says("Say hello."),
      { role: "assistant", content: "Hello.", reasoning_content: "They want a greeting, and a long one." },
      ...says("And goodbye."),
    ];
    const without = messages.map(({ reasoning_content: _, ...message }: { reasoning_content?: string }) => message);
    const prompt = async (some: object[]) =>
      (await client.chat.completions.create({ ...exact, max_tokens: 4, messages: some as never })).usage?.prompt_tokens;
    expect(await prompt(messages)).toBe((await prompt(without))!);
    await until(() => service.stderr().includes('"event":"request_part_lost"'), 5_000, "the log's line");
  });
});

describe("set up from the engine itself", () => {
  test("sluice init writes a file that serves it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-init-"));
    const file = join(folder, "sluice.yaml");
    try {
      const made = await service.json("init", "--upstream", root, "--output", file);
      expect(made).toEqual({ file, models: [hubName] });
      const config = readFileSync(file, "utf8");
      expect(config).toContain("# a guess: the engine does not report it");
      expect(config).toContain("dialect: transformers");
      await answersHello({ config }, hubName);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 120_000);

  test("SLUICE_UPSTREAM_URL and _MODEL serve every model of the default catalog by it", async () => {
    const env = { SLUICE_UPSTREAM_URL: url, SLUICE_UPSTREAM_MODEL: hubName };
    await answersHello({ env, operatorsWords: [hubName, new URL(url).host] }, null);
  }, 120_000);
});

/**
 * Starts a node, and checks the model's learned response to "Say hello.". `name` is the model; null for the node's
 * first one.
 */
async function answersHello(how: Parameters<typeof startSluice>[0], name: string | null): Promise<void> {
  const node = await startSluice(how);
  try {
    const { data } = (await (await node.fetch("/v1/models")).json()) as { data: { id: string }[] };
    const body = { model: name ?? data[0]!.id, temperature: 0, messages: says("Say hello.") };
    const answer = (await (await node.post("/v1/chat/completions", body)).json()) as OpenAI.ChatCompletion;
    expect(answer.choices[0]?.message.content?.trim()).toBe(hello);
  } finally {
    await node.stop();
  }
}
