/** The four laws of a codec (design/house.md, The centre), for chat completions. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent, PartHead } from "../../../src/inference/event.ts";
import { folding, type Result } from "../../../src/inference/result.ts";
import type { Usage } from "../../../src/inference/usage.ts";
import { openaiChatCaller, openaiChatUpstream } from "../../../src/protocol/openai-chat/codec.ts";
import type { ChatCompletionRequest } from "../../../src/protocol/openai-chat/contract.ts";
import { SseDecoder } from "../../../src/sse/decode.ts";
import { encodeSse } from "../../../src/sse/encode.ts";
import { grammarProblem } from "../grammar.ts";

const identity = { responseId: `chatcmpl-${"0".repeat(32)}`, createdAtSeconds: 1_790_000_000, model: "acme/writer-1" };
const wire = {
  model: "acme/writer-1",
  messages: [],
  stream: true,
  stream_options: { include_usage: true },
} as unknown as ChatCompletionRequest;

const text = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 4 });
const callId = fc.uuid().map((id) => `call_${id}`);
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
}
const said = (kind: "text" | "reasoning" | "refusal") => text.map((deltas): Part => ({ head: { kind }, deltas }));
const called: fc.Arbitrary<Part> = fc
  .record({ callId, toolName: fc.stringMatching(/^[a-zA-Z0-9_-]{1,16}$/), deltas: text })
  .map(({ deltas, ...call }) => ({ head: { kind: "tool-call", ...call }, deltas }));

/** The order in which models produce: reasoning, text, refusal, calls. */
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

const stream = fc.record({ parts, usage, cut: fc.boolean() }).map(({ parts, usage, cut }): InferenceEvent[] => {
  const hasCalls = parts.some((part) => part.head.kind === "tool-call");
  return [
    { type: "response-start", ...identity },
    ...parts.flatMap(({ head, deltas }, index): InferenceEvent[] => [
      { type: "part-start", index, part: head },
      ...deltas.map((delta): InferenceEvent => ({ type: "part-delta", index, delta })),
      { type: "part-end", index },
    ]),
    { type: "usage", usage },
    { type: "response-end", reason: cut ? "length" : hasCalls ? "tool_calls" : "stop" },
  ];
});

function encoded(events: InferenceEvent[]): string {
  const encoder = openaiChatCaller.stream.encoder(wire, { requestId: "req_1", identity, inputTokensEstimate: 1 });
  return [...events.flatMap((event) => encoder.push(event)), ...encoder.end()].map(encodeSse).join("");
}

function decoded(chunks: Uint8Array[]): InferenceEvent[] {
  const frames = new SseDecoder();
  const decoder = openaiChatUpstream.stream.decoder(identity);
  return [
    ...chunks.flatMap((chunk) => frames.push(chunk)).flatMap((message) => decoder.push(message)),
    ...decoder.end(),
  ];
}

function folded(events: InferenceEvent[]): Result {
  const fold = folding();
  for (const event of events) fold.push(event);
  return fold.result();
}

const bytes = (content: string) => new TextEncoder().encode(content);

describe("chat completions", () => {
  test("what is written is read back: decode(encode(events)) adds up to the same answer", () => {
    fc.assert(
      fc.property(stream, (events) => {
        const back = decoded([bytes(encoded(events))]);
        expect(grammarProblem(back)).toBeNull();
        expect(folded(back)).toEqual(folded(events));
      }),
    );
  });

  test("calls whose fragments interleave are written one after the other, each whole", () => {
    const events: InferenceEvent[] = [
      { type: "response-start", ...identity },
      { type: "part-start", index: 0, part: { kind: "tool-call", callId: "a", toolName: "f" } },
      { type: "part-start", index: 1, part: { kind: "tool-call", callId: "b", toolName: "g" } },
      { type: "part-delta", index: 1, delta: '{"y"' },
      { type: "part-delta", index: 0, delta: '{"x"' },
      { type: "part-delta", index: 1, delta: ":2}" },
      { type: "part-delta", index: 0, delta: ":1}" },
      { type: "part-end", index: 0 },
      { type: "part-end", index: 1 },
      { type: "response-end", reason: "tool_calls" },
    ];
    const order = [...encoded(events).matchAll(/"tool_calls":\[\{"index":(\d)/g)].map((match) => Number(match[1]));
    expect(order).toEqual([...order].sort());
    expect(folded(decoded([bytes(encoded(events))])).parts).toEqual(folded(events).parts);
  });

  test("stream and non-stream are the same answer", () => {
    fc.assert(
      fc.property(stream, (events) => {
        const whole = openaiChatCaller.response.encode(folded(events), wire);
        const back = openaiChatUpstream.response.decode(JSON.parse(JSON.stringify(whole)), identity);
        expect(grammarProblem(back)).toBeNull();
        expect(folded(back)).toEqual(folded(events));
      }),
    );
  });

  test("any cut of the bytes gives the same events", () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 20 }), (events, cuts) => {
        const whole = bytes(encoded(events));
        const at = [...new Set(cuts.map((cut) => cut % whole.length))].sort((a, b) => a - b);
        const chunks = [0, ...at].map((from, index) => whole.slice(from, at[index] ?? whole.length));
        expect(decoded(chunks)).toEqual(decoded([whole]));
      }),
    );
  });

  test("a stream that is cut before its end decodes to a failure, never to an answer", () => {
    fc.assert(
      fc.property(stream, fc.nat(), (events, where) => {
        const whole = encoded(events);
        const finish = whole.lastIndexOf('"finish_reason":"');
        const end = whole.lastIndexOf("data: ", finish);
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
    const fragment = fc.record(
      {
        index: fc.oneof(fc.nat(2), piece),
        id: fc.oneof(fc.constantFrom("a", "b", ""), piece),
        function: fc.oneof(
          fc.record(
            { name: fc.constantFrom("f", "", null), arguments: fc.oneof(piece, fc.constant('{"x":1}')) },
            { requiredKeys: [] },
          ),
          piece,
        ),
      },
      { requiredKeys: [] },
    );
    const delta = fc.record(
      {
        role: piece,
        content: piece,
        reasoning_content: piece,
        refusal: piece,
        tool_calls: fc.oneof(fc.array(fragment, { maxLength: 3 }), piece),
      },
      { requiredKeys: [] },
    );
    const chunk = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record(
          {
            choices: fc.array(
              fc.record(
                { delta, finish_reason: fc.constantFrom(null, "stop", "length", "weird", 3) },
                { requiredKeys: [] },
              ),
              { maxLength: 2 },
            ),
            usage: fc.oneof(piece, fc.object()),
          },
          { requiredKeys: [] },
        ),
      },
      { weight: 1, arbitrary: fc.anything() },
    );
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 12 }), fc.boolean(), (chunks, done) => {
        const decoder = openaiChatUpstream.stream.decoder(identity);
        const messages = [
          ...chunks.map((value) => ({ data: JSON.stringify(value) ?? "" })),
          ...(done ? [{ data: "[DONE]" }] : []),
        ];
        const events = [...messages.flatMap((message) => decoder.push(message)), ...decoder.end()];
        expect(grammarProblem(events)).toBeNull();
        const ids = events.flatMap((event) =>
          event.type === "part-start" && event.part.kind === "tool-call" ? [event.part.callId] : [],
        );
        expect(new Set(ids).size).toBe(ids.length);
        expect(encoded(events).match(/data: \[DONE\]/g)?.length).toBe(1);
      }),
      { numRuns: 500 },
    );
  });
});
