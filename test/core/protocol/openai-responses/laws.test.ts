/** The four laws of a codec (docs/design/architecture.md, The four laws of a codec), for Responses. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent } from "../../../../src/core/inference/event.ts";
import type { Result, ResultPart } from "../../../../src/core/inference/result.ts";
import type { Usage } from "../../../../src/core/inference/usage.ts";
import { contract } from "../../../../src/core/protocol/contract.ts";
import { ResponseObject } from "../../../../src/core/protocol/openai-responses/contract.ts";
import { unseal } from "../../../../src/core/protocol/openai-responses/sealed.ts";
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
  said,
  shuffle,
  toolName,
  usage,
} from "../laws.ts";
import { bytes, decodedBy, folded, streamProblem } from "../reading.ts";

const identity = { responseId: `resp_${"0".repeat(32)}`, createdAtSeconds: 1_790_000_000, model: "acme/writer-1" };
const asked = { model: "acme/writer-1", input: "hello", stream: true };
const wire = validated.responses(asked);
/** A request for reasoning as a summary; other requests get the model's own text. */
const summarized = validated.responses({ ...asked, reasoning: { summary: "auto" } });
const few = 40;

const thought: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ deltas: pieces, signature: fc.option(fc.string(), { nil: undefined }) }).map(({ deltas, signature }) => ({
    head: { kind: "reasoning" as const },
    deltas,
    ...(signature === undefined ? {} : { signature }),
  })),
  fc.string().map((encrypted) => ({ head: { kind: "reasoning" as const, encrypted }, deltas: [] })),
);
const called: fc.Arbitrary<Part> = fc
  .record({
    callId: fc.uuid(),
    toolName,
    custom: fc.constantFrom({}, { custom: true }),
    namespace: fc.constantFrom({}, { namespace: "n" }),
    deltas: pieces,
  })
  .map(({ deltas, callId, toolName, custom, namespace }) => ({
    head: { kind: "tool-call", callId, toolName, ...custom, ...namespace },
    deltas,
  }));

const cut = fc.constantFrom(null, "length" as const, "content_filter" as const);
type Ending = { usage: Usage; cut: "length" | "content_filter" | null };
const around = (parts: Part[], inner: InferenceEvent[], { usage, cut }: Ending): InferenceEvent[] => [
  { type: "response-start", ...identity },
  ...inner,
  { type: "usage", usage },
  { type: "response-end", reason: cut ?? naturalEnd(parts) },
];
const answers = fc
  .record({ parts: fc.array(fc.oneof(said("text"), said("refusal"), thought, called), { maxLength: 5 }), usage, cut })
  .map(({ parts, ...ending }) => around(parts, inOrder(parts), ending));

/**
 * Parts in which the arguments of a function's call are one JSON object: anything after the object is lost once the
 * next part has begun.
 */
const functioned = fc.tuple(called, objectPieces).map(([part, written]): Part => {
  const isCustom = part.head.kind === "tool-call" && part.head.custom;
  return isCustom ? part : { ...part, deltas: written };
});
/** The same answer twice: part after part, and with its parts interleaved. */
const twice = fc
  .record({
    parts: fc.array(fc.oneof(said("text"), said("refusal"), thought, functioned), { maxLength: 6 }),
    ...{ usage, cut, shuffle },
  })
  .map(({ parts, shuffle, ...ending }) => ({
    events: around(parts, inOrder(parts), ending),
    sideBySide: around(parts, interleaved(parts, shuffle), ending),
  }));

function encoded(events: readonly InferenceEvent[], by = wire): string {
  const context = { requestId: `req_${"0".repeat(32)}`, identity, inputTokensEstimate: 1 };
  return writtenBy(callers.responses.stream.encoder(by, context), events).map(encodeSse).join("");
}

/**
 * Opens the values that Sluice's codec has sealed (a part's signature or encrypted reasoning) and puts the original in
 * their place; an engine's own signature is opaque.
 */
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

const aResponse = contract(ResponseObject);

const subjectBy = (by: typeof wire): Subject => ({
  identity,
  upstream: upstreams.responses,
  answers,
  encoded: (events) => encoded(events, by),
  reply: (result) => callers.responses.response.encode(result, by),
  endOf: (stream) => stream.search(/event: response\.(completed|incomplete)\n/),
  opened,
  runs: few,
});

describe.each([
  ["responses", wire],
  ["responses whose reasoning is told as a summary", summarized],
])("%s", (_, by) => {
  const subject = subjectBy(by);
  holdsTheLaws(subject);

  test("every stream has the whole lifecycle, and every event of it satisfies the contract", () => {
    forAll([answers, fc.boolean()], few, (events, fails) => {
      const whole = encoded(fails ? events.slice(0, -1) : events, by);
      expect(streamProblem("responses", new SseDecoder().push(bytes(whole)))).toBeNull();
    });
  });

  test("the last event of a stream carries the whole object, to the byte of one that was not streamed", () => {
    forAll([answers], few, (events) => {
      const whole = callers.responses.response.encode(folded(events), by);
      expect(aResponse.satisfied(whole)).toBe(true);
      const frames = new SseDecoder().push(bytes(encoded(events, by)));
      expect(JSON.parse(frames.at(-2)?.data ?? "null").response).toEqual(JSON.parse(JSON.stringify(whole)));
    });
  });

  test("however parts interleave, each is an item of its own, whole and closed before the next opens", () => {
    forAll([twice], 200, ({ events, sideBySide }) => {
      const whole = encoded(sideBySide, by);
      expect(streamProblem("responses", new SseDecoder().push(bytes(whole)))).toBeNull();
      const back = decodedBy(upstreams.responses, identity, [bytes(whole)]);
      expect(grammarProblem(back)).toBeNull();
      expect(opened(folded(back))).toEqual(folded(events));
    });
  });

  test("wherever a stream fails whose parts interleave, it holds what was added, and no item that was not ended is done", () => {
    forAll([twice, fc.nat()], 200, ({ sideBySide }, where) => {
      const kept = sideBySide.slice(0, 1 + (where % (sideBySide.length - 1)));
      const frames = new SseDecoder().push(bytes(encoded(kept, by)));
      expect(streamProblem("responses", frames)).toBeNull();
      const called = folded([...kept, { type: "response-end", reason: "stop" }]).parts.flatMap(({ head, text }) =>
        head.kind === "tool-call" && !head.custom ? [[head.callId, text]] : [],
      );
      for (const { event, data } of frames) {
        if (event !== "response.output_item.done") continue;
        const { item } = JSON.parse(data);
        if (item.type !== "function_call") continue;
        expect(() => JSON.parse(item.arguments)).not.toThrow();
        expect(called).toContainEqual([item.call_id, item.arguments]);
      }
    });
  });
});
