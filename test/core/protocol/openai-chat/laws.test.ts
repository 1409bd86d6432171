/** The four laws of a codec (docs/design/architecture.md, The four laws of a codec), for chat completions. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent, StopReason } from "../../../../src/core/inference/event.ts";
import { compact } from "../../../../src/core/protocol/json.ts";
import { openaiChatCaller, openaiChatUpstream } from "../../../../src/core/protocol/openai-chat/codec.ts";
import type { ChatCompletionRequest } from "../../../../src/core/protocol/openai-chat/contract.ts";
import { encodeSse } from "../../../../src/core/sse/decode.ts";
import { writtenBy } from "../events.ts";
import { holdsTheLaws, inOrder, naturalEnd, type Part, pieces, type Subject, said, toolName, usage } from "../laws.ts";
import { folded } from "../reading.ts";

const identity = { responseId: `chatcmpl-${"0".repeat(32)}`, createdAtSeconds: 1_790_000_000, model: "acme/writer-1" };
const wire = {
  model: "acme/writer-1",
  messages: [],
  stream: true,
  stream_options: { include_usage: true },
  stop: ["END"],
} as unknown as ChatCompletionRequest;

const called: fc.Arbitrary<Part> = fc
  .record({
    callId: fc.uuid().map((id) => `call_${id}`),
    toolName,
    custom: fc.constantFrom({}, { custom: true }),
    deltas: pieces,
  })
  .map(({ deltas, custom, ...call }) => ({ head: { kind: "tool-call", ...call, ...custom }, deltas }));

/** The parts of an answer in the order in which models produce them: reasoning, text, refusal, calls. */
const parts = fc
  .record({
    reasoning: fc.option(said("reasoning")),
    text: fc.option(said("text")),
    refusal: fc.option(said("refusal")),
    calls: fc.uniqueArray(called, {
      maxLength: 3,
      selector: (part) => (part.head.kind === "tool-call" ? part.head.callId : ""),
    }),
  })
  .map(({ reasoning, text, refusal, calls }) => [reasoning, text, refusal, ...calls].filter((part) => part !== null));

const answers = fc
  .record({ parts, usage, end: fc.constantFrom("natural" as const, "cut" as const, "sequence" as const) })
  .map(({ parts, usage, end }): InferenceEvent[] => [
    { type: "response-start", ...identity },
    ...inOrder(parts),
    { type: "usage", usage },
    endOf(end, naturalEnd(parts)),
  ]);

function endOf(end: "natural" | "cut" | "sequence", natural: StopReason): InferenceEvent {
  if (end === "cut") return { type: "response-end", reason: "length" };
  const matched = end === "sequence" && natural === "stop" ? { stopSequence: "END" } : {};
  return { type: "response-end", reason: natural, ...matched };
}

function encoded(events: readonly InferenceEvent[]): string {
  const encoder = openaiChatCaller.stream.encoder(wire, { requestId: "req_1", identity, inputTokensEstimate: 1 });
  return writtenBy(encoder, events).map(encodeSse).join("");
}

const subject: Subject = {
  identity,
  upstream: openaiChatUpstream,
  answers,
  encoded,
  reply: (result) => openaiChatCaller.response.encode(result, wire),
  endOf: (stream) => stream.lastIndexOf("data: ", stream.lastIndexOf('"finish_reason":"')),
  runs: 100,
};

describe("chat completions", () => {
  holdsTheLaws(subject);

  test("a stop string is told where the caller asked for it, and only there", () => {
    const events: InferenceEvent[] = [
      { type: "response-start", ...identity },
      { type: "response-end", reason: "stop", stopSequence: "END" },
    ];
    const told = (stop: string | string[] | undefined) => {
      const { stop: _, ...unstopped } = wire;
      const asked = { ...unstopped, ...compact({ stop }) };
      const context = { requestId: "req_1", identity, inputTokensEstimate: 1 };
      const encoder = openaiChatCaller.stream.encoder(asked, context);
      const last = events.flatMap((event) => encoder.push(event)).map(({ data }) => data ?? "");
      const streamed = last.find((data) => data.includes('"finish_reason":"stop"'))!;
      const whole = openaiChatCaller.response.encode(folded(events), asked);
      const [choice] = JSON.parse(streamed).choices;
      expect(choice.stop_reason).toEqual(whole.choices[0]!.stop_reason);
      return "stop_reason" in choice ? choice.stop_reason : null;
    };
    expect([told("END"), told(["a", "END"])]).toEqual(["END", "END"]);
    expect([told(["a"]), told(undefined), told([])]).toEqual([null, null, null]);
  });
});
