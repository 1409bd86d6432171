/** The four laws of a codec (design/house.md, The centre), for Messages. What it cannot carry is in docs/protocols.md. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent, PartHead } from "../../../src/inference/event.ts";
import type { Native } from "../../../src/inference/request.ts";
import { folding, type Result } from "../../../src/inference/result.ts";
import type { Usage } from "../../../src/inference/usage.ts";
import { anthropicMessagesCaller, anthropicMessagesUpstream } from "../../../src/protocol/anthropic-messages/codec.ts";
import type { MessagesRequest } from "../../../src/protocol/anthropic-messages/contract.ts";
import { openaiChatCaller, openaiChatUpstream } from "../../../src/protocol/openai-chat/codec.ts";
import type { ChatCompletionRequest } from "../../../src/protocol/openai-chat/contract.ts";
import { SseDecoder } from "../../../src/sse/decode.ts";
import { encodeSse } from "../../../src/sse/encode.ts";
import type { SseMessage } from "../../../src/sse/message.ts";
import { grammarProblem } from "../grammar.ts";
import { streamProblem } from "./stream-grammar.ts";

const identity = { responseId: `msg_${"0".repeat(32)}`, createdAtSeconds: 1_790_000_000, model: "acme/writer-1" };
const context = { requestId: `req_${"0".repeat(32)}`, identity, inputTokensEstimate: 17 };
const caller = anthropicMessagesCaller();
const wire = {
  model: "acme/writer-1",
  max_tokens: 9,
  messages: [],
  stream: true,
  stop_sequences: ["END"],
} as MessagesRequest;

const text = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 4 });
const usage: fc.Arbitrary<Usage> = fc
  .record({ input: fc.nat(1e6), cached: fc.nat(1e6), written: fc.nat(1000), output: fc.nat(1e6), share: fc.nat(100) })
  .map(({ input, cached, written, output, share }) => ({
    inputTokens: input,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    outputTokens: output,
    reasoningTokens: Math.floor((output * share) / 100),
    source: "reported" as const,
  }));

interface Part {
  head: PartHead;
  deltas: string[];
  signature?: string;
  citations?: Native[];
}
const said: fc.Arbitrary<Part> = fc
  .record({ deltas: text, cited: fc.array(fc.string(), { maxLength: 2 }) })
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
      deltas: fc.oneof(text, fc.constant<string[]>([])),
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
/** Arguments as an engine writes them: one object, cut anywhere. */
const called: fc.Arbitrary<Part> = fc
  .record({
    callId: fc.uuid(),
    toolName: fc.stringMatching(/^[a-zA-Z0-9_-]{1,16}$/),
    input: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })),
    cuts: fc.array(fc.nat(), { maxLength: 4 }),
  })
  .map(({ callId, toolName, input, cuts }) => ({
    head: { kind: "tool-call", callId, toolName },
    deltas: pieces(JSON.stringify(input), cuts),
  }));

function pieces(whole: string, cuts: number[]): string[] {
  const at = [...new Set(cuts.map((cut) => cut % whole.length))].sort((a, b) => a - b);
  return [0, ...at].map((from, index) => whole.slice(from, at[index] ?? whole.length)).filter((piece) => piece !== "");
}

const answer = fc
  .record({
    parts: fc.uniqueArray(fc.oneof(said, thought, called), {
      maxLength: 6,
      selector: (part) => (part.head.kind === "tool-call" ? part.head.callId : part),
    }),
    usage,
    end: fc.constantFrom("length", "content_filter", "natural", "sequence"),
    /** In which order the deltas of parts that are open side by side come. */
    shuffle: fc.array(fc.nat(), { maxLength: 30 }),
  })
  .map(({ parts, usage, end, shuffle }) => {
    const calls = parts.some((part) => part.head.kind === "tool-call");
    const last: InferenceEvent =
      end === "length" || end === "content_filter"
        ? { type: "response-end", reason: end }
        : end === "sequence" && !calls
          ? { type: "response-end", reason: "stop", stopSequence: "END" }
          : { type: "response-end", reason: calls ? "tool_calls" : "stop" };
    const around = (inner: InferenceEvent[]): InferenceEvent[] => [
      { type: "response-start", ...identity },
      ...inner,
      { type: "usage", usage },
      last,
    ];
    return { events: around(inOrder(parts)), interleaved: around(interleaved(parts, shuffle)) };
  });

const endOf = ({ signature, citations }: Part) => ({
  ...(signature === undefined ? {} : { signature }),
  ...(citations === undefined ? {} : { citations }),
});

function inOrder(parts: Part[]): InferenceEvent[] {
  return parts.flatMap((part, index): InferenceEvent[] => [
    { type: "part-start", index, part: part.head },
    ...part.deltas.map((delta): InferenceEvent => ({ type: "part-delta", index, delta })),
    { type: "part-end", index, ...endOf(part) },
  ]);
}

/** The same parts, all open from the beginning, their deltas in any order. */
function interleaved(parts: Part[], shuffle: number[]): InferenceEvent[] {
  const left = parts.map((part) => [...part.deltas]);
  const events: InferenceEvent[] = parts.map(({ head }, index) => ({ type: "part-start", index, part: head }));
  for (let turn = 0; left.some((deltas) => deltas.length > 0); turn++) {
    const open = left.flatMap((deltas, index) => (deltas.length > 0 ? [index] : []));
    const index = open[(shuffle[turn] ?? 0) % open.length]!;
    events.push({ type: "part-delta", index, delta: left[index]!.shift()! });
  }
  return [
    ...events,
    ...parts.map((part, index): InferenceEvent => ({ type: "part-end", index, ...endOf(part) })).reverse(),
  ];
}

function written(events: readonly InferenceEvent[]): SseMessage[] {
  const encoder = caller.stream.encoder(wire, context);
  return [...events.flatMap((event) => encoder.push(event)), ...encoder.end()];
}
const encoded = (events: readonly InferenceEvent[]) => written(events).map(encodeSse).join("");

function decoded(chunks: Uint8Array[]): InferenceEvent[] {
  const frames = new SseDecoder();
  const decoder = anthropicMessagesUpstream.stream.decoder(identity);
  return [
    ...chunks.flatMap((chunk) => frames.push(chunk)).flatMap((message) => decoder.push(message)),
    ...decoder.end(),
  ];
}

function folded(events: readonly InferenceEvent[]): Result {
  const fold = folding();
  for (const event of events) fold.push(event);
  return fold.result();
}

const bytes = (content: string) => new TextEncoder().encode(content);

describe("Messages", () => {
  test("what is written is read back: decode(encode(events)) adds up to the same answer, however parts interleave", () => {
    fc.assert(
      fc.property(answer, ({ events, interleaved }) => {
        for (const variant of [events, interleaved]) {
          expect(streamProblem(written(variant))).toBeNull();
          const back = decoded([bytes(encoded(variant))]);
          expect(grammarProblem(back)).toBeNull();
          expect(folded(back)).toEqual(folded(events));
        }
      }),
    );
  });

  test("stream and non-stream are the same answer", () => {
    fc.assert(
      fc.property(answer, ({ events }) => {
        const whole = caller.response.encode(folded(events), wire);
        const back = anthropicMessagesUpstream.response.decode(JSON.parse(JSON.stringify(whole)), identity);
        expect(grammarProblem(back)).toBeNull();
        expect(folded(back)).toEqual(folded(events));
      }),
    );
  });

  test("any cut of the bytes gives the same events", () => {
    fc.assert(
      fc.property(answer, fc.array(fc.nat(), { maxLength: 20 }), ({ events }, cuts) => {
        const whole = bytes(encoded(events));
        const at = [...new Set(cuts.map((cut) => cut % whole.length))].sort((a, b) => a - b);
        const chunks = [0, ...at].map((from, index) => whole.slice(from, at[index] ?? whole.length));
        expect(decoded(chunks)).toEqual(decoded([whole]));
      }),
    );
  });

  test("a stream that is cut before its end decodes to a failure, never to an answer", () => {
    fc.assert(
      fc.property(answer, fc.nat(), ({ events }, where) => {
        const whole = encoded(events);
        const end = whole.lastIndexOf("event: message_stop");
        const back = decoded([bytes(whole.slice(0, where % (end + 1)))]);
        expect(grammarProblem(back)).toBeNull();
        expect(back.at(-1)?.type).toBe("response-failed");
      }),
    );
  });

  test("whatever an engine sends, what leaves is grammatical and a client can read it", () => {
    const piece = fc.oneof(
      fc.string({ maxLength: 5 }),
      fc.constant(null),
      fc.integer(),
      fc.constant({}),
      fc.constant([]),
    );
    const index = fc.oneof(fc.nat(2), fc.constant(undefined), piece);
    const kind = fc.constantFrom("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "");
    const block = fc.record(
      {
        type: kind,
        text: piece,
        thinking: piece,
        signature: piece,
        data: piece,
        id: fc.constantFrom("a", "b", "", null),
        name: fc.constantFrom("f", ""),
        input: fc.constantFrom({}, { x: 1 }, "x"),
        citations: piece,
      },
      { requiredKeys: ["type"] },
    );
    const delta = fc.record(
      {
        type: fc.constantFrom(
          "text_delta",
          "thinking_delta",
          "signature_delta",
          "input_json_delta",
          "citations_delta",
          "x",
        ),
        text: piece,
        thinking: piece,
        signature: piece,
        partial_json: fc.oneof(piece, fc.constantFrom('{"x":', "1}")),
        citation: piece,
      },
      { requiredKeys: ["type"] },
    );
    const event = fc.oneof(
      fc.record({ type: fc.constant("message_start"), message: fc.oneof(piece, fc.record({ usage: fc.object() })) }),
      fc.record({
        type: fc.constant("content_block_start"),
        index,
        content_block: fc.oneof({ weight: 8, arbitrary: block }, { weight: 1, arbitrary: piece }),
      }),
      fc.record({
        type: fc.constant("content_block_delta"),
        index,
        delta: fc.oneof({ weight: 8, arbitrary: delta }, { weight: 1, arbitrary: piece }),
      }),
      fc.record({ type: fc.constant("content_block_stop"), index }),
      fc.record({
        type: fc.constant("message_delta"),
        delta: fc.record({ stop_reason: fc.constantFrom(null, "tool_use", "weird", 3) }, { requiredKeys: [] }),
        usage: fc.oneof(piece, fc.object()),
      }),
      fc.constantFrom(
        { type: "ping" },
        { type: "message_stop" },
        { type: "error", error: { type: "api_error", message: "boom" } },
        { type: "new_thing" },
        {},
      ),
      fc.anything(),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), fc.boolean(), (values, stop) => {
        const decoder = anthropicMessagesUpstream.stream.decoder(identity);
        const messages = [...values, ...(stop ? [{ type: "message_stop" }] : [])].map((value) => ({
          data: JSON.stringify(value) ?? "",
        }));
        const events = [...messages.flatMap((message) => decoder.push(message)), ...decoder.end()];
        expect(grammarProblem(events)).toBeNull();
        const ids = events.flatMap((event) =>
          event.type === "part-start" && event.part.kind === "tool-call" ? [event.part.callId] : [],
        );
        expect(new Set(ids).size).toBe(ids.length);
        expect(streamProblem(written(events))).toBeNull();
      }),
      { numRuns: 500 },
    );
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
    fc.assert(
      fc.property(fc.array(event, { maxLength: 20 }), (events) => {
        const encoder = caller.stream.encoder(wire, context);
        const frames = new SseDecoder();
        const out = events.flatMap((event) =>
          event === "beat"
            ? frames.push(bytes(encoder.heartbeat()))
            : frames.push(bytes(encoder.push(event).map(encodeSse).join(""))),
        );
        out.push(...encoder.end());
        expect(streamProblem(out)).toBeNull();
      }),
      { numRuns: 1000 },
    );
  });
});

describe("every pair of protocols", () => {
  const chatWire = {
    model: "acme/writer-1",
    messages: [],
    stream: true,
    stream_options: { include_usage: true },
  } as unknown as ChatCompletionRequest;

  function throughChat(events: readonly InferenceEvent[]): InferenceEvent[] {
    const encoder = openaiChatCaller.stream.encoder(chatWire, context);
    const decoder = openaiChatUpstream.stream.decoder(identity);
    return [
      ...events.flatMap((event) => encoder.push(event)).flatMap((chunk) => decoder.push(chunk)),
      ...decoder.end(),
    ];
  }
  const throughMessages = (events: readonly InferenceEvent[]) => decoded([bytes(encoded(events))]);

  test("carries text, calls, ends and usage, so that each costs what it costs in chat", () => {
    const kept = ({ parts, usage, reason }: Result) => ({
      text: parts.flatMap(({ head, text }) => (head.kind === "text" ? [text] : [])).join(""),
      reasoning: parts.flatMap(({ head, text }) => (head.kind === "reasoning" ? [text] : [])).join(""),
      calls: parts.flatMap(({ head, text }) => (head.kind === "tool-call" ? [[head.callId, head.toolName, text]] : [])),
      usage,
      reason,
    });
    fc.assert(
      fc.property(answer, ({ events }) => {
        const asAnswered = kept(folded(events));
        for (const engine of [throughChat, throughMessages])
          for (const client of [throughChat, throughMessages]) {
            const read = client(engine(events));
            expect(grammarProblem(read)).toBeNull();
            expect(kept(folded(read))).toEqual(asAnswered);
          }
      }),
    );
  });
});
