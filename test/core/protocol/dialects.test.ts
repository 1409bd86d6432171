/**
 * Engines report their usage in dialects: each report, of a stream or of a reply, is read with the meaning that its
 * engine gives it.
 */
import { describe, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import type { Usage } from "../../../src/core/inference/usage.ts";
import { dialects } from "../../../src/core/protocol/dialects.ts";
import { openaiChatUpstream } from "../../../src/core/protocol/openai-chat/codec.ts";
import { usageReported } from "../../../src/core/protocol/openai-usage.ts";
import { dialectFixtures } from "./dialects.ts";
import { decodedBytewise } from "./reading.ts";

const identity = { responseId: "chatcmpl-1", createdAtSeconds: 1, model: "acme/writer-1" };

type Wire = Record<string, unknown>;
const chat = (wire: Wire) => usageReported(wire, dialects.generic.usage, "chat");
const responses = (wire: Wire) => usageReported(wire, dialects.generic.usage, "responses");

const reportsIn = (events: readonly InferenceEvent[]) =>
  events.flatMap((event) => (event.type === "usage" ? [event.usage] : []));

describe.each(dialectFixtures.map((fixture) => [fixture.engine, fixture] as const))("%s", (_, fixture) => {
  const { told, toldInChoice, usage } = fixture;
  const reported: Usage = { ...usage, source: "reported" };

  test("a stream", () => {
    const chunks = [
      { choices: [{ index: 0, delta: { content: "hi" }, finish_reason: null }] },
      { choices: [{ index: 0, delta: {}, finish_reason: "stop", ...toldInChoice }], ...told },
    ];
    const raw = `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`;
    expect(reportsIn(decodedBytewise(openaiChatUpstream, identity, raw))).toEqual([reported]);
  });

  test("a reply", () => {
    const reply = {
      choices: [{ index: 0, message: { content: "hi" }, finish_reason: "stop", ...toldInChoice }],
      ...told,
    };
    expect(reportsIn(openaiChatUpstream.response.decode(reply, identity))).toEqual([reported]);
  });
});

test("a report that stands twice is read once, where the protocol has it", () => {
  const twice = { usage: { prompt_tokens: 3, completion_tokens: 2 }, choices: [{ usage: { prompt_tokens: 9 } }] };
  expect(chat(twice)?.usage).toMatchObject({ inputTokens: 3, outputTokens: 2 });
});

describe("what only looks like a dialect", () => {
  const words = { prompt_tokens: 10, completion_tokens: 20 };
  const read = (usage: object, more: object = {}) => chat({ usage: { ...words, ...usage }, ...more })?.usage;
  const plain = { inputTokens: 10, outputTokens: 20, reasoningTokens: 0 };

  test.each<[string, object]>([
    ["a total that is less than its parts", { total_tokens: 12 }],
    ["a total of 0", { total_tokens: 0 }],
    ["a total that is no count", { total_tokens: "many" }],
    ["half a token beside", { total_tokens: 30.5 }],
    ["a total beyond every count", { total_tokens: 1e300 }],
  ])("%s adds nothing", (_, usage) => {
    expect(read(usage)).toMatchObject(plain);
  });

  test("reasoning that is named and is not what the total has beside stays inside the output", () => {
    const named = { total_tokens: 50, completion_tokens_details: { reasoning_tokens: 7 } };
    expect(read(named)).toMatchObject({ outputTokens: 20, reasoningTokens: 7 });
    expect(read({ total_tokens: 50, completion_tokens_details: { reasoning_tokens: 0 } })).toMatchObject(plain);
  });

  test("a total that is larger by what was cached is no reasoning", () => {
    expect(read({ total_tokens: 34, prompt_tokens_details: { cached_tokens: 4 } })).toMatchObject({ outputTokens: 20 });
  });

  test("times without counts are no report, and none spoils the one beside it", () => {
    for (const timings of [null, [], "x", {}, { prompt_n: 36, predicted_ms: 1 }, { cache_n: 1, prompt_n: -1 }])
      expect(chat({ timings })).toBeNull();
    expect(read({}, { timings: { prompt_n: 36, predicted_n: 9 } })).toMatchObject(plain);
  });

  test.each<[string, object]>([
    ["no choice", { choices: [] }],
    ["choices that are none", { choices: { 0: { usage: words } } }],
    ["a choice that is null", { choices: [null] }],
    ["x_groq without usage", { x_groq: { id: "req_1" } }],
    ["x_groq that is null", { x_groq: null }],
    ["an empty usage", { usage: {} }],
  ])("%s is no report", (_, wire) => {
    expect(chat(wire as Record<string, unknown>)).toBeNull();
  });
});

test("what is no count is named as such in every dialect", () => {
  const words = { prompt_tokens: 10, completion_tokens: 20 };
  for (const cached of [-1, 1.5, "3 or so", {}, 1e300])
    expect(chat({ usage: { ...words, prompt_cache_hit_tokens: cached } })?.rejected).toMatchObject({
      input: "malformed",
    });
});

test("a report of Responses has reasoning beside its output too", () => {
  const usage = { input_tokens: 5, output_tokens: 6, total_tokens: 15, output_tokens_details: { reasoning_tokens: 4 } };
  expect(responses({ usage })?.usage).toMatchObject({ inputTokens: 5, outputTokens: 10, reasoningTokens: 4 });
});
