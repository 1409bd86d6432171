/**
 * The four laws of a codec (docs/design/architecture.md, The four laws of a codec), and generators of answers for
 * testing them.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent, PartHead, StopReason } from "../../../src/core/inference/event.ts";
import type { Native } from "../../../src/core/inference/request.ts";
import type { Result } from "../../../src/core/inference/result.ts";
import type { Usage } from "../../../src/core/inference/usage.ts";
import type { ResponseIdentity, UpstreamCodec } from "../../../src/core/protocol/codec.ts";
import { cutAt } from "../../harness/cut.ts";
import { forAll } from "./for-all.ts";
import { grammarProblem } from "./grammar.ts";
import { bytes, decodedBy, folded } from "./reading.ts";

// ---- answers ---------------------------------------------------------------------------------------------------------

export interface Part {
  head: PartHead;
  deltas: string[];
  signature?: string;
  citations?: Native[];
}

export const pieces = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), {
  minLength: 1,
  maxLength: 4,
});
export const toolName = fc.stringMatching(/^[a-zA-Z0-9_-]{1,16}$/);

export const usage: fc.Arbitrary<Usage> = fc
  .record({ input: fc.nat(1e6), cached: fc.nat(1e6), written: fc.nat(1000), output: fc.nat(1e6), share: fc.nat(100) })
  .map(({ input, cached, written, output, share }) => ({
    inputTokens: input,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    outputTokens: output,
    reasoningTokens: Math.floor((output * share) / 100),
    source: "reported" as const,
  }));

/** The arguments of a call as an engine writes them: one JSON object, cut anywhere. */
export const objectPieces: fc.Arbitrary<string[]> = fc
  .record({
    input: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })),
    cuts: fc.array(fc.nat(), { maxLength: 4 }),
  })
  .map(({ input, cuts }) => cutAt(JSON.stringify(input), cuts).filter((piece) => piece !== ""));

/** The order in which interleaved parts continue. */
export const shuffle = fc.array(fc.nat(), { maxLength: 40 });

export function said(kind: "text" | "reasoning" | "refusal"): fc.Arbitrary<Part> {
  return pieces.map((deltas) => ({ head: { kind }, deltas }));
}

export function partEnd(index: number, { signature, citations }: Part): InferenceEvent {
  const proof = {
    ...(signature === undefined ? {} : { signature }),
    ...(citations === undefined ? {} : { citations }),
  };
  return { type: "part-end", index, ...proof };
}

/** The events of parts that come one after the other. */
export function inOrder(parts: readonly Part[]): InferenceEvent[] {
  return parts.flatMap((part, index): InferenceEvent[] => [
    { type: "part-start", index, part: part.head },
    ...part.deltas.map((delta): InferenceEvent => ({ type: "part-delta", index, delta })),
    partEnd(index, part),
  ]);
}

/**
 * The events of the same parts, interleaved: the parts begin in their order, and their other events come in any order,
 * which `shuffle` decides.
 */
export function interleaved(parts: readonly Part[], shuffle: readonly number[]): InferenceEvent[] {
  const left = parts.map((part, index) => inOrder([part]).map((event) => ({ ...event, index }) as InferenceEvent));
  const events: InferenceEvent[] = [];
  for (let begun = 0, turn = 0; left.some((own) => own.length > 0); turn++) {
    const open = left.flatMap((own, index) => (index <= begun && own.length > 0 ? [index] : []));
    const index = open[(shuffle[turn] ?? 0) % open.length]!;
    if (index === begun) begun += 1;
    events.push(left[index]!.shift()!);
  }
  return events;
}

/** The reason with which a model ends an answer by itself. */
export function naturalEnd(parts: readonly Part[]): StopReason {
  return parts.some((part) => part.head.kind === "tool-call") ? "tool_calls" : "stop";
}

// ---- the laws --------------------------------------------------------------------------------------------------------

export interface Subject {
  identity: ResponseIdentity;
  upstream: UpstreamCodec;
  answers: fc.Arbitrary<InferenceEvent[]>;
  /** The bytes of a stream of these events, as Sluice's own encoder writes it. */
  encoded(events: readonly InferenceEvent[]): string;
  /** The reply to a request that does not stream. */
  reply(result: Result): unknown;
  /**
   * The position in a stream at which its last frame begins: a stream that is cut before that position has not ended.
   */
  endOf(stream: string): number;
  /**
   * Undoes the differences between a result and the result that was read back, but only in values that no engine reads
   * (those that Sluice has sealed).
   */
  opened?(result: Result): Result;
  runs: number;
}

export function holdsTheLaws(subject: Subject): void {
  const { identity, upstream, answers, encoded, reply, endOf, runs, opened = (result) => result } = subject;
  const decoded = (chunks: Uint8Array[]) => decodedBy(upstream, identity, chunks);

  test("what is written is read back: decode(encode(events)) adds up to the same answer", () => {
    forAll([answers], runs, (events) => {
      const back = decoded([bytes(encoded(events))]);
      expect(grammarProblem(back)).toBeNull();
      expect(opened(folded(back))).toEqual(folded(events));
    });
  });

  test("stream and non-stream are the same answer", () => {
    forAll([answers], runs, (events) => {
      const back = upstream.response.decode(JSON.parse(JSON.stringify(reply(folded(events)))), identity);
      expect(grammarProblem(back)).toBeNull();
      expect(opened(folded(back))).toEqual(folded(events));
    });
  });

  test("any cut of the bytes gives the same events", () => {
    forAll([answers, fc.array(fc.nat(), { maxLength: 20 })], runs, (events, cuts) => {
      const whole = bytes(encoded(events));
      expect(decoded(cutAt(whole, cuts))).toEqual(decoded([whole]));
    });
  });

  test("a stream that is cut before its end decodes to a failure, never to an answer", () => {
    forAll([answers, fc.nat()], runs, (events, where) => {
      const whole = encoded(events);
      const back = decoded([bytes(whole.slice(0, where % (endOf(whole) + 1)))]);
      expect(grammarProblem(back)).toBeNull();
      expect(back.at(-1)?.type).toBe("response-failed");
    });
  });
}
