/** A conversation in the form in which chat engines receive it. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceRequest, InputPart, Turn } from "../../../../src/core/inference/request.ts";
import { openaiChatCaller, openaiChatUpstream } from "../../../../src/core/protocol/openai-chat/codec.ts";
import type { ChatCompletionRequest } from "../../../../src/core/protocol/openai-chat/contract.ts";
import { saying } from "../../../harness/request.ts";
import { forAll } from "../for-all.ts";

const ask = { model: "m", stream: true, outputTokens_max: 100 };
const centre = (turns: Turn[], more: Partial<InferenceRequest> = {}) => saying("", { turns, ...more });
const asked = (request: InferenceRequest) =>
  JSON.parse(JSON.stringify(openaiChatUpstream.request.encode(request, ask)));
const messages = (...turns: Turn[]) => asked(centre(turns)).messages;

const image: InputPart = { kind: "image", url: "https://a/b.png" };
const calls = (...ids: string[]): Turn => ({
  role: "assistant",
  parts: ids.map((callId) => ({ kind: "tool-call", callId, toolName: "f", arguments: "{}" })),
});
const toolCalls = (...ids: string[]) =>
  ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } }));

describe("a conversation", () => {
  test("of a chat caller that is in order goes on as it was written", () => {
    const wire = [
      { role: "system", content: "s" },
      { role: "user", content: "a" },
      {
        role: "user",
        content: [
          { type: "text", text: "b" },
          { type: "image_url", image_url: { url: "https://a/b.png" } },
        ],
      },
      { role: "assistant", content: null, tool_calls: toolCalls("1", "2") },
      { role: "tool", tool_call_id: "2", content: "x" },
      {
        role: "tool",
        tool_call_id: "1",
        content: [
          { type: "text", text: "y" },
          { type: "text", text: "z" },
        ],
      },
      { role: "assistant", content: "c", reasoning_content: "hm" },
      { role: "system", content: "note" },
      { role: "user", content: "d" },
    ];
    const request = openaiChatCaller.request.decode({ model: "m", messages: wire } as ChatCompletionRequest);
    expect(asked(request).messages).toEqual(wire);
  });

  test("has what a tool result cannot hold in the message after all results of its turn", () => {
    const result = (callId: string, ...parts: InputPart[]): Turn => ({ role: "tool", callId, parts });
    const attached = [
      { type: "text", text: "Attached to the result of the tool call 1:" },
      { type: "image_url", image_url: { url: "https://a/b.png" } },
    ];
    const turns = [calls("1", "2"), result("1", { kind: "text", text: "see" }, image), result("2")];
    const before = [
      { role: "assistant", content: null, tool_calls: toolCalls("1", "2") },
      { role: "tool", tool_call_id: "1", content: "see" },
      { role: "tool", tool_call_id: "2", content: "" },
    ];
    expect(messages(...turns)).toEqual([...before, { role: "user", content: attached }]);
    expect(messages(...turns, { role: "user", parts: [{ kind: "text", text: "so?" }] })).toEqual([
      ...before,
      { role: "user", content: [...attached, { type: "text", text: "so?" }] },
    ]);
    expect(messages(...turns, { role: "assistant", parts: [{ kind: "text", text: "so." }] })).toEqual([
      ...before,
      { role: "user", content: attached },
      { role: "assistant", content: "so." },
    ]);
  });

  test("keeps every part, in whatever order callers put them", () => {
    const part: fc.Arbitrary<InputPart> = fc.oneof(
      fc.uuid().map((text): InputPart => ({ kind: "text", text })),
      fc.webUrl().map((url): InputPart => ({ kind: "image", url })),
    );
    const parts = fc.array(part, { maxLength: 3 });
    const turn: fc.Arbitrary<Turn> = fc.oneof(
      parts.map((parts): Turn => ({ role: "user", parts })),
      parts.map((parts): Turn => ({ role: "tool", callId: "1", parts })),
      fc.constant(calls("1")),
      fc.uuid().map((text): Turn => ({ role: "system", parts: [{ kind: "text", text }] })),
    );
    forAll([fc.array(turn, { maxLength: 8 })], 100, (turns) => {
      const said = JSON.stringify(messages(...turns));
      for (const { parts } of turns)
        for (const part of parts) {
          if (part.kind === "text") expect(said).toContain(part.text);
          if (part.kind === "image") expect(said).toContain(JSON.stringify(part.url));
        }
    });
  });
});
