/**
 * An engine that refuses an optional field or another maker's reasoning signature is asked once more without it, and no
 * engine gets half a character.
 */

import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import type { Loss } from "../../../src/core/protocol/codec.ts";
import type { Dialect } from "../../../src/core/protocol/dialect.ts";
import { dialects } from "../../../src/core/protocol/dialects.ts";
import { ask } from "../../../src/core/upstream/ask.ts";
import type { UpstreamProtocol } from "../../../src/core/upstream/codecs.ts";
import { LesserDialects } from "../../../src/core/usage/attempt-request.ts";
import { saying } from "../../harness/request.ts";
import { upstreamOf } from "../routing/models.ts";
import { engineClient, question } from "./asking.ts";

const asked: string[] = [];
let refuses: (body: string) => object | null = () => null;
const server = Bun.serve({
  port: 0,
  async fetch(request) {
    const body = await request.text();
    asked.push(body);
    const error = refuses(body);
    if (error) return Response.json({ error }, { status: 400 });
    return Response.json(fine[new URL(request.url).pathname]);
  },
});
const message = { type: "message", role: "assistant" };
const fine: Record<string, object> = {
  "/v1/chat/completions": { choices: [{ index: 0, message: { ...message, content: "fine" }, finish_reason: "stop" }] },
  "/v1/messages": { ...message, content: [{ type: "text", text: "fine" }], stop_reason: "end_turn" },
  "/v1/responses": {
    ...{ object: "response", status: "completed" },
    output: [{ ...message, content: [{ type: "output_text", text: "fine", annotations: [] }] }],
  },
};
const engines = engineClient();
afterAll(() => server.stop(true));
beforeEach(() => {
  asked.length = 0;
});

const url = `http://127.0.0.1:${server.port}/v1`;
const upstream = upstreamOf(url);

async function answerTo(
  request: InferenceRequest,
  dialect: Dialect,
  { inputBytes = 40, protocol = "openai-chat" as UpstreamProtocol } = {},
) {
  const losses: Loss[] = [];
  const lesser: Dialect[] = [];
  const events: InferenceEvent[] = [];
  const more = {
    ...{ client: engines, request, stream: false, inputBytes, dialect },
    lost: (loss: Loss) => void losses.push(loss),
    refuses: (found: Dialect) => void lesser.push(found),
  };
  const asking = question(url, more, protocol);
  for await (const batch of ask(asking)) events.push(...batch);
  return { losses, lesser, last: events.at(-1)! };
}

const thoughtful = saying("hi", {
  stream: false,
  turns: [
    { role: "user", parts: [{ kind: "text", text: "hi" }] },
    {
      role: "assistant",
      parts: [
        { kind: "reasoning", text: "Hm." },
        { kind: "text", text: "Yes." },
      ],
    },
    { role: "user", parts: [{ kind: "text", text: "go on" }] },
  ],
});

describe("an engine that refuses a thought by its field", () => {
  test.each([
    { message: "property 'messages.1.assistant.reasoning_content' is unsupported" },
    { message: "Extra inputs are not permitted", param: "messages.1.reasoning_content" },
    { message: "Unrecognized request argument supplied: `reasoning_content`" },
  ])("is asked once more without it: %j", async (error) => {
    refuses = (body) => (body.includes("reasoning_content") ? error : null);
    const { last, losses, lesser } = await answerTo(thoughtful, dialects.generic);
    expect(last.type).toBe("response-end");
    expect(asked.map((body) => body.includes("reasoning_content"))).toEqual([true, false]);
    expect(asked[1]).toContain("Yes.");
    expect(losses).toEqual(["refused", "thoughts"]);
    expect(lesser[0]?.reasoning.out).toEqual([]);
  });

  test("is not asked again where it names another field, or the request had no thought", async () => {
    refuses = () => ({ message: "no", param: "temperature" });
    expect((await answerTo(thoughtful, dialects.generic)).last.type).toBe("response-failed");
    refuses = () => ({ message: "`reasoning_content` is unsupported" });
    expect((await answerTo(saying("hi", { stream: false }), dialects.generic)).last.type).toBe("response-failed");
    expect(asked).toHaveLength(2);
  });

  test.each(["`reasoning_content` is unsupported", 'Unrecognized schema: {"type":"reasoning_content"}'])(
    "and the request without it too, keeps the field in the requests of others: %s",
    async (message) => {
      refuses = () => ({ message });
      const { last, lesser } = await answerTo(thoughtful, dialects.generic);
      expect([last.type, asked.length, lesser]).toEqual(["response-failed", 2, []]);
    },
  );

  test.each([
    "Missing `reasoning_content` field in the assistant message at message index 2. For more information, see the docs.",
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
  ])("is not asked without a field that it wants: %s", async (message) => {
    refuses = () => ({ message });
    const { last, lesser } = await answerTo(thoughtful, dialects.deepseek);
    expect([last.type, asked.length, lesser]).toEqual(["response-failed", 1, []]);
  });

  test("is known for an hour, by its name for the model", () => {
    const known = new LesserDialects();
    const route = { upstream, model: "m" };
    known.learned(route, dialects.openai, 0);
    expect(known.of(route, 3_599_999)).toBe(dialects.openai);
    expect(known.of(route, 3_600_000)).toBeUndefined();
    expect(known.of({ upstream, model: "other" }, 0)).toBeUndefined();
    expect(known.of({ upstream: { ...upstream, dialect: dialects.vllm }, model: "m" }, 0)).toBe(dialects.vllm);
  });
});

describe("an engine that refuses a summary of reasoning", () => {
  const message = "Your organization must be verified to generate reasoning summaries.";
  const error = { message, param: "reasoning.summary", code: "unsupported_value" };
  const hasSummary = (body: string) => body.includes('"summary":"auto"');
  beforeEach(() => {
    refuses = (body) => (hasSummary(body) ? error : null);
  });
  const protocol = "openai-responses";

  test("is asked once more without it, and not for one again", async () => {
    const request = saying("hi", { stream: false, reasoning: { effort: "low" } });
    const { last, lesser } = await answerTo(request, dialects.openai, { protocol });
    expect(last.type).toBe("response-end");
    expect(asked.map(hasSummary)).toEqual([true, false]);
    expect(asked[1]).toContain('"effort":"low"');
    await answerTo(request, lesser[0]!, { protocol });
    expect(asked.map(hasSummary)).toEqual([true, false, false]);
  });

  test("has refused a client that asks for the summary itself", async () => {
    const wire = { effort: "low", summary: "auto" };
    const request = saying("hi", { stream: false, reasoning: { effort: "low", native: { protocol, wire } } });
    expect((await answerTo(request, dialects.openai, { protocol })).last.type).toBe("response-failed");
    expect(asked).toHaveLength(1);
  });
});

describe("an engine that refuses a proof of reasoning of another maker", () => {
  const text = "messages.1.content.0: Invalid `signature` in `thinking` block";
  const encrypted = { message: "The encrypted content gAAA...Rg== could not be verified.", param: null };
  const cases = [
    ["signature", "anthropic-messages", dialects.anthropic, { message: text }],
    [
      "encrypted",
      "anthropic-messages",
      dialects.anthropic,
      { message: "1: Invalid `data` in `redacted_thinking` block" },
    ],
    ["signature", "openai-responses", dialects.openai, encrypted],
    ["encrypted", "openai-responses", dialects.openai, { message: "no", code: "invalid_encrypted_content" }],
  ] as const;
  /** A conversation that contains reasoning of another maker, and in its last turn reasoning with this signature. */
  const proven = (by: "signature" | "encrypted", last: string) =>
    saying("hi", {
      stream: false,
      turns: [
        { role: "user", parts: [{ kind: "text", text: "hi" }] },
        {
          role: "assistant",
          parts: [
            { kind: "reasoning", text: by === "encrypted" ? "" : "Hm.", [by]: "of-another" },
            { kind: "text", text: "Yes." },
          ],
        },
        { role: "user", parts: [{ kind: "text", text: "go on" }] },
        {
          role: "assistant",
          parts: [
            { kind: "reasoning", text: "So.", signature: last },
            { kind: "tool-call", callId: "call_1", toolName: "look", arguments: "{}" },
          ],
        },
        { role: "tool", callId: "call_1", parts: [{ kind: "text", text: "done" }] },
      ],
    });
  const proofsIn = (body: string) => ["of-another", "its-own"].filter((proof) => body.includes(proof));

  test.each(cases)(
    "(%s, %s) is asked once more without it, with its own of the last turn",
    async (by, protocol, dialect, error) => {
      refuses = (body) => (body.includes("of-another") ? error : null);
      const { last, losses, lesser } = await answerTo(proven(by, "its-own"), dialect, { protocol });
      expect(last.type).toBe("response-end");
      expect(asked.map(proofsIn)).toEqual([["of-another", "its-own"], ["its-own"]]);
      expect(asked[1]).toContain("Yes.");
      expect(losses).toContain("refused");
      // Another conversation with the same engine keeps its signatures.
      expect(lesser).toEqual([]);
    },
  );

  test.each(cases)(
    "(%s, %s) is asked without any if that of the last turn is refused as well",
    async (by, protocol, dialect, error) => {
      refuses = (body) => (body.includes("of-another") ? error : null);
      const { last } = await answerTo(proven(by, "of-another"), dialect, { protocol });
      expect(last.type).toBe("response-end");
      expect(asked.map(proofsIn)).toEqual([["of-another"], ["of-another"], []]);
      expect(asked[2]).toContain("call_1");
    },
  );

  test("is not asked again where it names something else, or the request has no proof", async () => {
    const protocol = "anthropic-messages";
    refuses = () => ({ message: "messages.3: Expected `thinking` or `redacted_thinking`, but found `tool_use`" });
    expect((await answerTo(proven("signature", "its-own"), dialects.anthropic, { protocol })).last.type).toBe(
      "response-failed",
    );
    refuses = () => ({ message: text });
    expect((await answerTo(thoughtful, dialects.anthropic, { protocol })).last.type).toBe("response-failed");
    expect(asked).toHaveLength(2);
  });
});

describe("half a character alone", () => {
  test.each([
    ["in a small request", 40, ""],
    ["in a large one, which is written in pieces", 2 * 1024 * 1024, "x".repeat(600_000)],
  ])("becomes U+FFFD %s, and whole ones stay", async (_, bytes, more) => {
    refuses = () => null;
    const request = saying(`cut\ud83d here \ude00, whole \ud83d\ude00, written \\ud83d${more}`, { stream: false });
    request.tools = [{ kind: "function", name: "t", description: "cut \udc00", parameters: { type: "object" } }];
    const { last, losses } = await answerTo(request, dialects.generic, { inputBytes: bytes });
    expect(last.type).toBe("response-end");
    const body = JSON.parse(asked[0]!);
    expect(body.messages[0].content).toBe(`cut\ufffd here \ufffd, whole \ud83d\ude00, written \\ud83d${more}`);
    expect(body.tools[0].function.description).toBe("cut \ufffd");
    expect(losses).toEqual(["surrogates", "surrogates", "surrogates"]);
  });
});
