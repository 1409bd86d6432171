/** The four laws of a codec (design/house.md, The centre), for Responses. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent, PartHead } from "../../../src/inference/event.ts";
import { folding, type Result, type ResultPart } from "../../../src/inference/result.ts";
import type { Usage } from "../../../src/inference/usage.ts";
import { contract } from "../../../src/protocol/contract.ts";
import { openaiResponsesCaller, openaiResponsesUpstream } from "../../../src/protocol/openai-responses/codec.ts";
import { ResponseObject, ResponsesStreamEvent } from "../../../src/protocol/openai-responses/contract.ts";
import { unseal } from "../../../src/protocol/openai-responses/sealed-reasoning.ts";
import { validateResponsesRequest } from "../../../src/protocol/openai-responses/validate.ts";
import { SseDecoder } from "../../../src/sse/decode.ts";
import { encodeSse } from "../../../src/sse/encode.ts";
import { grammarProblem } from "../grammar.ts";
import { lifecycleProblem } from "./lifecycle.ts";

const identity = { responseId: `resp_${"0".repeat(32)}`, createdAtSeconds: 1_790_000_000, model: "acme/writer-1" };
const wire = validateResponsesRequest({ model: "acme/writer-1", input: "hello", stream: true });
const few = { numRuns: 40 };

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
}
const said = (kind: "text" | "refusal") => text.map((deltas): Part => ({ head: { kind }, deltas }));
const thought: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ deltas: text, signature: fc.option(fc.string(), { nil: undefined }) }).map(({ deltas, signature }) => ({
    head: { kind: "reasoning" as const },
    deltas,
    ...(signature === undefined ? {} : { signature }),
  })),
  fc.string().map((encrypted) => ({ head: { kind: "reasoning" as const, encrypted }, deltas: [] })),
);
const called: fc.Arbitrary<Part> = fc
  .record({
    callId: fc.uuid(),
    toolName: fc.stringMatching(/^[a-zA-Z0-9_-]{1,16}$/),
    custom: fc.constantFrom({}, { custom: true }),
    namespace: fc.constantFrom({}, { namespace: "n" }),
    deltas: text,
  })
  .map(({ deltas, callId, toolName, custom, namespace }) => ({
    head: { kind: "tool-call", callId, toolName, ...custom, ...namespace },
    deltas,
  }));

const stream = fc
  .record({
    parts: fc.array(fc.oneof(said("text"), said("refusal"), thought, called), { maxLength: 5 }),
    usage,
    cut: fc.constantFrom(null, "length" as const, "content_filter" as const),
  })
  .map(({ parts, usage, cut }): InferenceEvent[] => {
    const hasCalls = parts.some((part) => part.head.kind === "tool-call");
    return [
      { type: "response-start", ...identity },
      ...parts.flatMap(({ head, deltas, signature }, index): InferenceEvent[] => [
        { type: "part-start", index, part: head },
        ...deltas.map((delta): InferenceEvent => ({ type: "part-delta", index, delta })),
        { type: "part-end", index, ...(signature === undefined ? {} : { signature }) },
      ]),
      { type: "usage", usage },
      { type: "response-end", reason: cut ?? (hasCalls ? "tool_calls" : "stop") },
    ];
  });

function encoded(events: InferenceEvent[]): string {
  const context = { requestId: `req_${"0".repeat(32)}`, identity, inputTokensEstimate: 1 };
  const encoder = openaiResponsesCaller.stream.encoder(wire, context);
  return [...events.flatMap((event) => encoder.push(event)), ...encoder.end()].map(encodeSse).join("");
}

function decoded(chunks: Uint8Array[]): InferenceEvent[] {
  const frames = new SseDecoder();
  const decoder = openaiResponsesUpstream.stream.decoder(identity);
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

/** An engine's proof is opaque; ours is the sealed one, and holds what the part was. */
function opened(result: Result): Result {
  return { ...result, parts: result.parts.map(openedPart) };
}
function openedPart(part: ResultPart): ResultPart {
  const sealed = part.signature ?? (part.head.kind === "reasoning" ? part.head.encrypted : undefined);
  const inner = sealed === undefined ? null : unseal(sealed, identity.model);
  if (!inner) return part;
  const { signature: _, ...rest } = part;
  const head = { kind: "reasoning" as const, ...(inner.encrypted === undefined ? {} : { encrypted: inner.encrypted }) };
  return { ...rest, head, ...(inner.signature === undefined ? {} : { signature: inner.signature }) };
}

const bytes = (content: string) => new TextEncoder().encode(content);
const anEvent = contract(ResponsesStreamEvent);
const aResponse = contract(ResponseObject);

describe("responses", () => {
  test("what is written is read back: decode(encode(events)) adds up to the same answer", () => {
    fc.assert(
      fc.property(stream, (events) => {
        const back = decoded([bytes(encoded(events))]);
        expect(grammarProblem(back)).toBeNull();
        expect(opened(folded(back))).toEqual(folded(events));
      }),
      few,
    );
  });

  test("every stream has the whole lifecycle, and every event of it satisfies the contract", () => {
    fc.assert(
      fc.property(stream, fc.boolean(), (events, fails) => {
        const whole = encoded(fails ? events.slice(0, -1) : events);
        const frames = new SseDecoder().push(bytes(whole));
        expect(lifecycleProblem(frames)).toBeNull();
        for (const { data } of frames.slice(0, -1)) {
          const value = JSON.parse(data);
          if (!anEvent.satisfied(value)) throw new Error(anEvent.violation(value).message);
        }
      }),
      few,
    );
  });

  test("stream and non-stream are the same answer, to the byte of the final object", () => {
    fc.assert(
      fc.property(stream, (events) => {
        const whole = openaiResponsesCaller.response.encode(folded(events), wire);
        expect(aResponse.satisfied(whole)).toBe(true);
        const frames = new SseDecoder().push(bytes(encoded(events)));
        expect(JSON.parse(frames.at(-2)?.data ?? "null").response).toEqual(JSON.parse(JSON.stringify(whole)));
        const back = openaiResponsesUpstream.response.decode(JSON.parse(JSON.stringify(whole)), identity);
        expect(grammarProblem(back)).toBeNull();
        expect(opened(folded(back))).toEqual(folded(events));
      }),
      few,
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
      few,
    );
  });

  test("a stream that is cut before its end decodes to a failure, never to an answer", () => {
    fc.assert(
      fc.property(stream, fc.nat(), (events, where) => {
        const whole = encoded(events);
        const end = whole.search(/event: response\.(completed|incomplete)\n/);
        const back = decoded([bytes(whole.slice(0, where % (end + 1)))]);
        expect(grammarProblem(back)).toBeNull();
        expect(back.at(-1)?.type).toBe("response-failed");
      }),
      few,
    );
  });

  test("whatever an engine sends, what leaves is grammatical and a client can read it", () => {
    const piece = fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom(null, 0, 1, 2, -1, {}, [], "a", "b"));
    const types = fc.constantFrom("message", "function_call", "custom_tool_call", "reasoning", "constructor", "", null);
    const part = fc.record(
      { type: fc.constantFrom("output_text", "refusal", "reasoning_text", "x"), text: piece, refusal: piece },
      { requiredKeys: [] },
    );
    const item = fc.record(
      {
        type: types,
        id: piece,
        call_id: piece,
        name: fc.constantFrom("f", "g", "", null),
        arguments: piece,
        input: piece,
        content: fc.oneof(fc.array(part, { maxLength: 2 }), piece),
        summary: fc.oneof(fc.array(part, { maxLength: 2 }), piece),
        encrypted_content: piece,
      },
      { requiredKeys: [] },
    );
    const kinds = ResponsesStreamEvent.anyOf.map((event) => event.properties.type.const);
    const event = fc.oneof(
      {
        weight: 9,
        arbitrary: fc.record(
          {
            type: fc.constantFrom(
              ...kinds,
              ...kinds,
              "response.reasoning_summary_text.delta",
              "response.reasoning.delta",
              "response.new_thing",
            ),
            output_index: piece,
            content_index: piece,
            summary_index: piece,
            item_id: piece,
            item: fc.oneof(item, piece),
            delta: piece,
            text: piece,
            arguments: piece,
            logprobs: fc.oneof(fc.array(piece), piece),
            response: fc.oneof(
              fc.record({ output: fc.array(item, { maxLength: 3 }), usage: piece }, { requiredKeys: [] }),
              piece,
            ),
          },
          { requiredKeys: ["type"] },
        ),
      },
      { weight: 1, arbitrary: fc.anything() },
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), (sent) => {
        const decoder = openaiResponsesUpstream.stream.decoder(identity);
        const messages = sent.map((value) => ({ data: JSON.stringify(value) ?? "" }));
        const events = [...messages.flatMap((message) => decoder.push(message)), ...decoder.end()];
        expect(grammarProblem(events)).toBeNull();
        const ids = events.flatMap((event) =>
          event.type === "part-start" && event.part.kind === "tool-call" ? [event.part.callId] : [],
        );
        expect(new Set(ids).size).toBe(ids.length);
        expect(lifecycleProblem(new SseDecoder().push(bytes(encoded(events))))).toBeNull();
      }),
      { numRuns: 400 },
    );
  });
});
