/**
 * `protocol: anthropic-messages` in sluice.yaml, over real sockets: a service whose engine speaks Messages (another
 * Sluice, before the simulator), asked in Messages and in chat completions. All four pairs of the two protocols are here
 * or in messages.test.ts and chat.test.ts.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Message } from "../../../src/core/protocol/anthropic-messages/contract.ts";
import { eventsOf, model, says, startService, words } from "../../harness/engine.ts";
import { eventsOf as messagesEventsOf } from "../../harness/messages.ts";
import { startSluice } from "../../harness/sluice.ts";

setDefaultTimeout(60_000);

const engine = await startService({ engine: { directives: "", namesModel: false } });
const service = await startSluice({
  config: `
upstreams:
  canary-messages-engine: { url: "${engine.url}/v1", protocol: anthropic-messages, api_key: "\${ENGINE_KEY}" }
metering: { currency: USD }
models:
  - id: acme/front-1
    created: 1790000000
    context_window: 131072
    max_output_tokens: 16384
    capabilities: [tools, parallel_tools, vision, reasoning, structured_output, files]
    prices: { input: 0.1, cached_input: 0.01, cache_write: 0.125, output: 0.4 }
    routes: [{ upstream: canary-messages-engine, model: ${model} }]
`,
  env: { ENGINE_KEY: engine.key },
  operatorsWords: ["canary-messages-engine"],
  secrets: [engine.key, model, new URL(engine.url).host],
});
afterAll(async () => {
  await service.stop();
  await engine.stop();
});

const front = "acme/front-1";
const tool = { name: "get_weather", input_schema: { type: "object", properties: { place: { type: "string" } } } };
const asMessages = (directives: string, text = "hello there", more: object = {}) =>
  service.post("/v1/messages", { model: front, max_tokens: 512, messages: says(directives, text), ...more });
const asChat = (directives: string, text = "hello there", more: object = {}) =>
  service.post("/v1/chat/completions", { model: front, max_tokens: 512, messages: says(directives, text), ...more });

interface Completion {
  choices: { message: { content: string; tool_calls?: { function: { name: string } }[] }; finish_reason: string }[];
  usage: { prompt_tokens: number; completion_tokens: number };
}
const messageOf = async (response: Response) => (await response.json()) as Message;
const completionOf = async (response: Response) => (await response.json()) as Completion;

describe("an engine that speaks Messages", () => {
  test("answers both protocols with the same text and the same usage", async () => {
    const message = await messageOf(await asMessages("echo cached=3", words(9)));
    const completion = await completionOf(await asChat("echo cached=3", words(9)));
    expect(message.content).toEqual([{ type: "text", text: words(9) }]);
    expect(completion.choices[0]).toMatchObject({ message: { content: words(9) }, finish_reason: "stop" });
    expect(message.usage).toMatchObject({ cache_read_input_tokens: 3, output_tokens: 9 });
    expect(completion.usage).toMatchObject({
      prompt_tokens: message.usage.input_tokens + 3,
      completion_tokens: 9,
    });
  });

  test("calls tools in parallel, streamed and not", async () => {
    const tools = [tool, { ...tool, name: "get_time" }];
    const message = await messageOf(await asMessages("calls=2", "go", { tools }));
    expect(message.content.map((block) => block.type === "tool_use" && block.name)).toEqual([
      "get_weather",
      "get_time",
    ]);
    const functions = tools.map(({ name, input_schema }) => ({
      type: "function",
      function: { name, parameters: input_schema },
    }));
    const completion = await completionOf(await asChat("calls=2", "go", { tools: functions }));
    expect(completion.choices[0]?.message.tool_calls?.map((call) => call.function.name)).toEqual([
      "get_weather",
      "get_time",
    ]);
    const events = await messagesEventsOf(await asMessages("calls=2", "go", { tools, stream: true }));
    const starts = events.flatMap((event) => (event.type === "content_block_start" ? [event.content_block.type] : []));
    expect(starts).toEqual(["tool_use", "tool_use"]);
  });

  test("gets cache marks and thinking as they were written, and is asked with its own key", async () => {
    const thinking = { type: "enabled", budget_tokens: 2048 };
    const response = await asMessages("reasoning=5 echo", "x", {
      max_tokens: 4096,
      thinking,
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
    });
    const message = await messageOf(response);
    expect(message.content.map((block) => block.type)).toEqual(["thinking", "text"]);
  });

  test.each([
    ["status=429", 429, "capacity_exceeded"],
    ["status=500", 503, "overloaded"],
    ["context-length", 400, "context_length_exceeded"],
  ])("that refuses (%s) is told in the caller's words", async (directives, status, code) => {
    const refused = await asMessages(directives);
    const { error } = (await refused.json()) as { error: { details: { error_code: string } } };
    expect([refused.status, error.details.error_code]).toEqual([status, code]);
    const chat = await asChat(directives);
    expect([chat.status, ((await chat.json()) as { error: { code: string } }).error.code]).toEqual([status, code]);
  });

  test("that breaks off in the middle ends both kinds of stream with their own error", async () => {
    const messages = await messagesEventsOf(await asMessages("tps=50 cut-after=5 tokens=20", "x", { stream: true }));
    expect(messages.at(-1)).toMatchObject({ type: "error" });
    const chat = await eventsOf(await asChat("tps=50 cut-after=5 tokens=20", "x", { stream: true }));
    expect(chat.at(-1)).toBe("[DONE]");
    expect(JSON.parse(chat.at(-2) ?? "")).toMatchObject({ error: { type: "api_error" } });
  });
});

test("what only such an engine can do is refused of another, by name", async () => {
  const cited = {
    type: "document",
    source: { type: "text", media_type: "text/plain", data: "A list." },
    citations: { enabled: true },
  };
  const body = { max_tokens: 64, messages: [{ role: "user", content: [cited, { type: "text", text: "?" }] }] };
  expect((await engine.post("/v1/messages", { ...body, model })).status).toBe(400);
});
