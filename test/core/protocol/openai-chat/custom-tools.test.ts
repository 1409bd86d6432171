/** Custom tools of a chat caller: listed, called and answered as plain text, whether engines know such tools or not. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent } from "../../../../src/core/inference/event.ts";
import { openaiChatCaller, openaiChatUpstream } from "../../../../src/core/protocol/openai-chat/codec.ts";
import { validateChatRequest } from "../../../../src/core/protocol/openai-chat/validate.ts";
import { encodeSse } from "../../../../src/core/sse/decode.ts";
import { cutAt } from "../../../harness/cut.ts";
import { forAll } from "../for-all.ts";
import { folded } from "../reading.ts";

const identity = { responseId: `chatcmpl-${"0".repeat(32)}`, createdAtSeconds: 1, model: "acme/writer-1" };
const wire = validateChatRequest(
  {
    model: "acme/writer-1",
    messages: [{ role: "user", content: "a" }],
    stream: true,
    tools: [
      { type: "custom", custom: { name: "patch", description: "Changes files." } },
      { type: "function", function: { name: "f" } },
    ],
  },
  [],
);
/** The part of the request that decoding left over, with which the answer is encoded. */
const left = openaiChatCaller.request.remainder(wire);

const calls = (...deltas: string[]): InferenceEvent[] => [
  { type: "response-start", ...identity },
  { type: "part-start", index: 0, part: { kind: "tool-call", callId: "c", toolName: "patch" } },
  ...deltas.map((delta): InferenceEvent => ({ type: "part-delta", index: 0, delta })),
  { type: "part-end", index: 0 },
  { type: "response-end", reason: "tool_calls" },
];

interface Fragment {
  type?: string;
  custom?: { name?: string; input?: string };
  function?: object;
}

function streamed(events: readonly InferenceEvent[]): Fragment[] {
  const encoder = openaiChatCaller.stream.encoder(left, { requestId: "r", identity, inputTokensEstimate: 1 });
  // Encodes deltas directly as frames where possible, as the run does.
  const frames = events
    .map(
      (event) =>
        (event.type === "part-delta" ? encoder.frame(event) : null) ?? encoder.push(event).map(encodeSse).join(""),
    )
    .join("");
  return frames
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: {"))
    .flatMap((frame) => JSON.parse(frame.slice(6)).choices[0].delta.tool_calls ?? []);
}

describe("a custom tool", () => {
  test("is a function with one text to engines", () => {
    const asked = openaiChatUpstream.request.encode(openaiChatCaller.request.decode(wire), {
      model: "m",
      stream: true,
      outputTokens_max: 9,
    });
    expect(JSON.parse(JSON.stringify(asked.tools))[0]).toEqual({
      type: "function",
      function: {
        name: "patch",
        description: "Changes files.\n\nIts input is plain text.",
        parameters: expect.objectContaining({ required: ["input"], additionalProperties: false }),
      },
    });
  });

  test("is sent no fragment without text: what is JSON around its input is not heard of", () => {
    const fragments = streamed(calls('{"in', 'put": ', '"a', "b", '"', "}"));
    expect(fragments.slice(1).map(({ custom }) => custom?.input)).toEqual(["a", "b"]);
  });

  test("is called with plain text, however the engine cut its JSON", () => {
    forAll([fc.string({ unit: "binary" }), fc.array(fc.nat(), { maxLength: 6 })], 200, (input, cuts) => {
      const events = calls(...cutAt(JSON.stringify({ input }), cuts));
      const fragments = streamed(events);
      expect(fragments[0]).toEqual(expect.objectContaining({ type: "custom", custom: { name: "patch", input: "" } }));
      expect(fragments.some((fragment) => fragment.function)).toBe(false);
      expect(fragments.map(({ custom }) => custom?.input ?? "").join("")).toBe(input);
      const [call] = openaiChatCaller.response.encode(folded(events), left).choices[0]!.message.tool_calls!;
      expect(call).toEqual({ id: "c", type: "custom", custom: { name: "patch", input } });
    });
  });

  test("leaves calls of functions as they are", () => {
    const events = calls("{}").map((event) =>
      event.type === "part-start"
        ? { ...event, part: { kind: "tool-call" as const, callId: "c", toolName: "f" } }
        : event,
    );
    expect(streamed(events)[0]).toEqual(
      expect.objectContaining({ type: "function", function: { name: "f", arguments: "" } }),
    );
  });
});
