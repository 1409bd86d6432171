/**
 * The four laws of a codec, for Messages (docs/design/architecture.md, The four laws of a codec). Losses:
 * docs/protocols.md.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent, PartHead } from "../../../../src/core/inference/event.ts";
import type { Native } from "../../../../src/core/inference/request.ts";
import type { Result } from "../../../../src/core/inference/result.ts";
import type { MessagesRequest } from "../../../../src/core/protocol/anthropic-messages/contract.ts";
import type { StreamEncoder, UpstreamCodec } from "../../../../src/core/protocol/codec.ts";
import type { ChatCompletionRequest } from "../../../../src/core/protocol/openai-chat/contract.ts";
import { encodeSse, SseDecoder } from "../../../../src/core/sse/decode.ts";
import { callers, upstreams, validated } from "../codecs.ts";
import { writtenBy } from "../events.ts";
import { forAll } from "../for-all.ts";
import { grammarProblem } from "../grammar.ts";
import {
  holdsTheLaws,
  inOrder,
  interleaved,
  naturalEnd,
  objectPieces,
  type Part,
  pieces,
  type Subject,
  shuffle,
  toolName,
  usage,
} from "../laws.ts";
import { bytes, decodedBy, folded, streamProblem } from "../reading.ts";

const identity = { responseId: `msg_${"0".repeat(32)}`, createdAtSeconds: 1_790_000_000, model: "acme/writer-1" };
const context = { requestId: `req_${"0".repeat(32)}`, identity, inputTokensEstimate: 17 };
const caller = callers.messages;
const wire = {
  model: "acme/writer-1",
  max_tokens: 9,
  messages: [],
  stream: true,
  stop_sequences: ["END"],
} as MessagesRequest;

const cited: fc.Arbitrary<Part> = fc
  .record({ deltas: pieces, cited: fc.array(fc.string(), { maxLength: 2 }) })
  .map(({ deltas, cited }) => ({
    head: { kind: "text" },
    deltas,
    ...(cited.length > 0
      ? { citations: cited.map((cited_text): Native => ({ protocol: "anthropic-messages", wire: { cited_text } })) }
      : {}),
  }));
const thought: fc.Arbitrary<Part> = fc.oneof(
  fc
    .record({
      deltas: fc.oneof(pieces, fc.constant<string[]>([])),
      signature: fc.option(fc.base64String({ maxLength: 40 })),
    })
    .map(
      ({ deltas, signature }): Part => ({
        head: { kind: "reasoning" },
        deltas,
        ...(signature === null ? {} : { signature }),
      }),
    ),
  fc.string().map((encrypted): Part => ({ head: { kind: "reasoning", encrypted }, deltas: [] })),
);
const called: fc.Arbitrary<Part> = fc
  .record({ callId: fc.uuid(), toolName, deltas: objectPieces })
  .map(({ callId, toolName, deltas }) => ({ head: { kind: "tool-call", callId, toolName }, deltas }));

const answer = fc
  .record({
    parts: fc.uniqueArray(fc.oneof(cited, thought, called), {
      maxLength: 6,
      selector: (part) => (part.head.kind === "tool-call" ? part.head.callId : part),
    }),
    usage,
    end: fc.constantFrom("length", "content_filter", "natural", "sequence"),
    shuffle,
  })
  .map(({ parts, usage, end, shuffle }) => {
    const natural = naturalEnd(parts);
    const last: InferenceEvent =
      end === "length" || end === "content_filter"
        ? { type: "response-end", reason: end }
        : end === "sequence" && natural === "stop"
          ? { type: "response-end", reason: "stop", stopSequence: "END" }
          : { type: "response-end", reason: natural };
    const around = (inner: InferenceEvent[]): InferenceEvent[] => [
      { type: "response-start", ...identity },
      ...inner,
      { type: "usage", usage },
      last,
    ];
    return { events: around(inOrder(parts)), interleaved: around(interleaved(parts, shuffle)) };
  });

const written = (events: readonly InferenceEvent[]) => writtenBy(caller.stream.encoder(wire, context), events);
const encoded = (events: readonly InferenceEvent[]) => written(events).map(encodeSse).join("");

const subject: Subject = {
  identity,
  upstream: upstreams.messages,
  answers: answer.map(({ events }) => events),
  encoded,
  reply: (result) => caller.response.encode(result, wire),
  endOf: (stream) => stream.lastIndexOf("event: message_delta"),
  runs: 100,
};

describe("Messages", () => {
  holdsTheLaws(subject);

  test("however parts interleave, each is written whole, and the stream is a legal one", () => {
    forAll([answer], 100, ({ events, interleaved }) => {
      for (const variant of [events, interleaved]) {
        expect(streamProblem("messages", written(variant))).toBeNull();
        const back = decodedBy(upstreams.messages, identity, [bytes(encoded(variant))]);
        expect(grammarProblem(back)).toBeNull();
        expect(folded(back)).toEqual(folded(events));
      }
    });
  });

  test("whatever events come, in whatever order, what is written is a legal stream, and so it is with a heartbeat anywhere", () => {
    const index = fc.nat(3);
    const head = fc.constantFrom<PartHead>(
      { kind: "text" },
      { kind: "refusal" },
      { kind: "reasoning" },
      { kind: "reasoning", encrypted: "e" },
      { kind: "tool-call", callId: "c", toolName: "f" },
    );
    const event: fc.Arbitrary<InferenceEvent | "beat"> = fc.oneof(
      fc.constant("beat" as const),
      fc.constant<InferenceEvent>({ type: "response-start", ...identity }),
      fc.record({ type: fc.constant("part-start" as const), index, part: head }),
      fc.record({
        type: fc.constant("part-delta" as const),
        index,
        delta: fc.constantFrom("", "x", "{", "}", '{"a":1}'),
      }),
      fc.record({ type: fc.constant("part-end" as const), index }),
      usage.map((usage): InferenceEvent => ({ type: "usage", usage })),
      fc.constant<InferenceEvent>({ type: "response-end", reason: "stop" }),
    );
    forAll([fc.array(event, { maxLength: 20 })], 1000, (events) => {
      const encoder = caller.stream.encoder(wire, context);
      const frames = new SseDecoder();
      const out = events.flatMap((event) =>
        event === "beat"
          ? frames.push(bytes(encoder.heartbeat()))
          : frames.push(bytes(encoder.push(event).map(encodeSse).join(""))),
      );
      out.push(...encoder.end());
      expect(streamProblem("messages", out)).toBeNull();
    });
  });
});

describe("every pair of protocols", () => {
  const chatWire = {
    model: "acme/writer-1",
    messages: [],
    stream: true,
    stream_options: { include_usage: true },
  } as unknown as ChatCompletionRequest;
  const responsesWire = validated.responses({ model: "acme/writer-1", input: "hello", stream: true });

  /** Writes events for a client, and reads the frames back as if an engine had written them. */
  const through = (encoder: StreamEncoder, upstream: UpstreamCodec) => (events: readonly InferenceEvent[]) =>
    decodedBy(upstream, identity, [bytes(writtenBy(encoder, events).map(encodeSse).join(""))]);
  const sides = [
    () => through(callers.chat.stream.encoder(chatWire, context), upstreams.chat),
    () => through(caller.stream.encoder(wire, context), upstreams.messages),
    () => through(callers.responses.stream.encoder(responsesWire, context), upstreams.responses),
  ];

  test("carries text, calls, ends and usage, so that each costs what it costs in chat", () => {
    const kept = ({ parts, usage, reason }: Result) => ({
      text: parts.flatMap(({ head, text }) => (head.kind === "text" ? [text] : [])).join(""),
      reasoning: parts.flatMap(({ head, text }) => (head.kind === "reasoning" ? [text] : [])).join(""),
      calls: parts.flatMap(({ head, text }) => (head.kind === "tool-call" ? [[head.callId, head.toolName, text]] : [])),
      usage,
      reason,
    });
    forAll([answer], 100, ({ events }) => {
      const asAnswered = kept(folded(events));
      for (const engine of sides)
        for (const client of sides) {
          const read = client()(engine()(events));
          expect(grammarProblem(read)).toBeNull();
          expect(kept(folded(read))).toEqual(asAnswered);
        }
    });
  });
});
