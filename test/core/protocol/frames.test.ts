/** Deltas that are encoded directly as frames (docs/design/protocols.md, Deltas as frames), in all three protocols. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent, PartHead, TokenLogprob } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { MessagesRequest } from "../../../src/core/protocol/anthropic-messages/contract.ts";
import type { StreamEncoder } from "../../../src/core/protocol/codec.ts";
import type { ChatCompletionRequest } from "../../../src/core/protocol/openai-chat/contract.ts";
import { encodeSse } from "../../../src/core/sse/decode.ts";
import { callers, validated } from "./codecs.ts";
import { forAll } from "./for-all.ts";
import { grammarProblem } from "./grammar.ts";
import { interleaved, objectPieces, type Part, shuffle, toolName } from "./laws.ts";

const identity = { responseId: "answer-1", createdAtSeconds: 1_790_000_000, model: 'acme/"writer\u2028' };
const context = { requestId: "req_1", identity, inputTokensEstimate: 3 };
const model = "acme/writer-1";
const chat = (more: object) => () =>
  callers.chat.stream.encoder({ model, messages: [], stream: true, ...more } as ChatCompletionRequest, context);
const responses = (more: object) => {
  const wire = validated.responses({ model, input: "hello", stream: true, ...more });
  return () => callers.responses.stream.encoder(wire, context);
};
const messages = { model, max_tokens: 9, messages: [], stream: true } as MessagesRequest;
const grammar = [{ type: "custom", name: "patch" }];

const encoders: [string, () => StreamEncoder][] = [
  ["chat", chat({})],
  ["chat with usage and log probabilities", chat({ stream_options: { include_usage: true }, logprobs: true })],
  ["chat with a custom tool", chat({ tools: [{ type: "custom", custom: { name: "patch" } }] })],
  ["Messages", () => callers.messages.stream.encoder(messages, context)],
  ["Responses", responses({ tools: grammar })],
  ["Responses with a summary of reasoning", responses({ reasoning: { summary: "auto" } })],
  ["Responses with log probabilities", responses({ include: ["message.output_text.logprobs"], top_logprobs: 1 })],
];

// ---- streams ---------------------------------------------------------------------------------------------------------

/** Code units of any kind, including unpaired surrogates, and characters that need escaping in a frame or its JSON. */
const unit = fc.oneof(
  fc.nat(0xffff).map((code) => String.fromCharCode(code)),
  fc.constantFrom(
    "\n",
    "\r\n",
    "\u2028",
    "\u2029",
    "\ud83d",
    "\ude00",
    "\0",
    '"',
    '""',
    "\\",
    "$&",
    "{",
    "}",
    '{"a":1}',
  ),
);
const text = fc.array(unit, { maxLength: 5 }).map((nanos) => nanos.join(""));

const head: fc.Arbitrary<PartHead> = fc.oneof(
  fc.constantFrom<PartHead>({ kind: "text" }, { kind: "text" }, { kind: "refusal" }, { kind: "reasoning" }),
  fc.string().map((encrypted): PartHead => ({ kind: "reasoning", encrypted })),
  fc
    .record({ callId: fc.uuid(), toolName: fc.oneof(toolName, fc.constant("patch")), custom: fc.boolean() })
    .map(({ custom, ...call }): PartHead => ({ kind: "tool-call", ...call, ...(custom ? { custom } : {}) })),
);
const deltas = fc.oneof(fc.array(text, { maxLength: 6 }), objectPieces);
const parts = fc.array(fc.record<Part>({ head, deltas }), { maxLength: 5 });

const token = fc.record<TokenLogprob>({
  token: text,
  logprob: fc.constant(-1),
  bytes: fc.constant(null),
  top_logprobs: fc.constant([{ token: "a", logprob: -1, bytes: null }]),
});
const usageEvent: InferenceEvent = { type: "usage", usage: { ...noUsage, inputTokens: 5, source: "reported" } };
const ending = fc.constantFrom<InferenceEvent[]>(
  [{ type: "response-end", reason: "stop" }],
  [{ type: "response-end", reason: "length" }],
  [{ type: "response-failed", fault: new Fault("overloaded", "Busy.") }],
);

/** Any grammatical stream, perhaps cut at any event by a failure. `null` stands for a heartbeat. */
const streams = fc
  .record({
    parts,
    shuffle,
    ending,
    failsAt: fc.option(fc.nat(40), { freq: 3 }),
    /** For each event: token probabilities with it, or usage or a heartbeat before it, or none of these. */
    beside: fc.array(fc.oneof(fc.constantFrom("none" as const, "usage" as const, "beat" as const), fc.array(token))),
  })
  .map(({ parts, shuffle, ending, failsAt, beside }) => {
    const inner: (InferenceEvent | null)[] = interleaved(parts, shuffle).flatMap((event, at) => {
      const more = beside[at] ?? "none";
      if (more === "usage") return [usageEvent, event];
      if (more === "beat") return [null, event];
      return more !== "none" && event.type === "part-delta" ? [{ ...event, logprobs: more }] : [event];
    });
    const whole = [{ type: "response-start", ...identity } as const, ...inner, ...ending];
    if (failsAt === null || failsAt >= whole.length) return whole;
    return [...whole.slice(0, failsAt), { type: "response-failed" as const, fault: new Fault("overloaded", "Busy.") }];
  });

// ---- the guarantees --------------------------------------------------------------------------------------------------

const pushed = (encoder: StreamEncoder, event: InferenceEvent) => encoder.push(event).map(encodeSse).join("");
const framed = (encoder: StreamEncoder, event: InferenceEvent) =>
  event.type === "part-delta" ? encoder.frame(event) : null;

describe.each(encoders)("%s", (_, encoder) => {
  test("a delta that is written as a frame is what pushing it would have written, and so is all that follows", () => {
    forAll([streams], 500, (events) => {
      expect(grammarProblem(events.filter((event) => event !== null))).toBeNull();
      const [one, other] = [encoder(), encoder()];
      for (const event of events) {
        if (event === null) expect(one.heartbeat()).toBe(other.heartbeat());
        else expect(framed(one, event) ?? pushed(one, event)).toBe(pushed(other, event));
      }
      expect(one.end().map(encodeSse)).toEqual(other.end().map(encodeSse));
    });
  });

  test.each<PartHead>([{ kind: "text" }, { kind: "reasoning" }, { kind: "tool-call", callId: "c", toolName: "f" }])(
    "of $kind, no delta but the first and the last has to be pushed",
    (part) => {
      const one = encoder();
      const delta = (delta: string): InferenceEvent => ({ type: "part-delta", index: 0, delta });
      pushed(one, { type: "response-start", ...identity });
      pushed(one, { type: "part-start", index: 0, part });
      expect(framed(one, delta("{ ")) ?? pushed(one, delta("{ "))).toContain('"{ "');
      for (const letter of ["b", "c"]) expect(framed(one, delta(letter))).toContain(`"${letter}"`);
    },
  );

  test("a part that waits for another is not told before it", () => {
    const one = encoder();
    pushed(one, { type: "response-start", ...identity });
    for (const index of [0, 1]) pushed(one, { type: "part-start", index, part: { kind: "text" } });
    for (const delta of ["a", "b"]) pushed(one, { type: "part-delta", index: 0, delta });
    expect(framed(one, { type: "part-delta", index: 1, delta: "c" })).toBeNull();
  });
});
