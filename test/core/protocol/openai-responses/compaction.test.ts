/**
 * Compaction in both directions: a model's summary returns to any engine unchanged, and streams have the same content
 * as whole answers.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent } from "../../../../src/core/inference/event.ts";
import type { UpstreamCodec } from "../../../../src/core/protocol/codec.ts";
import { contract } from "../../../../src/core/protocol/contract.ts";
import { type OutputCompaction, ResponseObject } from "../../../../src/core/protocol/openai-responses/contract.ts";
import { sealCompaction } from "../../../../src/core/protocol/openai-responses/sealed.ts";
import { validateCompactRequest } from "../../../../src/core/protocol/openai-responses/validate.ts";
import { encodeSse, SseDecoder } from "../../../../src/core/sse/decode.ts";
import { upstreamCodecs, upstreamProtocols } from "../../../../src/core/upstream/codecs.ts";
import { openaiCompactCaller } from "../../../../src/features/responses/compact.ts";
import { CompactedResponse } from "../../../../src/features/responses/contract.ts";
import { callers, validated } from "../codecs.ts";
import { forAll } from "../for-all.ts";
import { inOrder, type Part, pieces, said, usage } from "../laws.ts";
import { bytes, folded, streamProblem } from "../reading.ts";

const identity = { responseId: `resp_${"0".repeat(32)}`, createdAtSeconds: 1_790_000_000, model: "acme/writer-1" };
const user = { role: "user", content: "hello" };
const trigger = { type: "compaction_trigger" };
const asked = validated.responses({ model: "acme/writer-1", input: [user, trigger], store: false });
const wire = callers.responses.request.remainder(asked);

const summary = fc.string({ unit: "binary", minLength: 1 }).map((text) => `${text.toWellFormed()}x`);
const tool: fc.Arbitrary<Part> = pieces.map((deltas) => ({
  head: { kind: "tool-call" as const, callId: "c", toolName: "f" },
  deltas,
}));
const thought: fc.Arbitrary<Part> = pieces.map((deltas) => ({ head: { kind: "reasoning" as const }, deltas }));
const answers = fc
  .record({
    parts: fc.array(fc.oneof(said("text"), thought, tool), { maxLength: 5 }),
    ...{ summary, usage },
    reason: fc.constantFrom("stop" as const, "length" as const, "content_filter" as const),
    leftOutTurns: fc.constantFrom({}, { leftOutTurns: 1 }, { leftOutTurns: 7 }),
  })
  .map(({ parts, summary, usage, reason, leftOutTurns }): InferenceEvent[] => [
    { type: "response-start", ...identity, ...leftOutTurns },
    ...inOrder([...parts, { head: { kind: "text" }, deltas: [summary] }]),
    { type: "usage", usage },
    { type: "response-end", reason },
  ]);

function encoded(events: readonly InferenceEvent[]): string {
  const context = { requestId: `req_${"0".repeat(32)}`, identity, inputTokensEstimate: 1 };
  const encoder = callers.responses.stream.encoder(wire, context);
  const frames = events.flatMap((event) => {
    if (event.type === "part-delta") expect(encoder.frame(event)).toBeNull();
    return encoder.push(event);
  });
  return [...frames, ...encoder.end()].map(encodeSse).join("");
}

const aResponse = contract(ResponseObject);
const aCompaction = contract(CompactedResponse);

describe("an answer to it", () => {
  test("is one item, whatever else the model said, and the stream ends with what the whole is", () => {
    forAll([answers], 100, (events) => {
      const result = folded(events);
      const whole = callers.responses.response.encode(result, wire);
      expect(aResponse.satisfied(whole)).toBe(true);
      expect(whole.output.map(({ type }) => type)).toEqual(["compaction"]);
      const text = result.parts.map((part) => (part.head.kind === "text" ? part.text : "")).join("");
      const { encrypted_content: sealed } = whole.output[0] as OutputCompaction;
      expect(sealed.startsWith("compaction.1:")).toBe(true);
      expect(sealed).toContain(text);
      expect(sealed.includes("left out.]")).toBe(result.leftOutTurns !== undefined);
      expect(sealed.includes("[This summary breaks off here")).toBe(result.reason !== "stop");
      const frames = new SseDecoder().push(bytes(encoded(events)));
      expect(streamProblem("responses", frames)).toBeNull();
      expect(JSON.parse(frames.at(-2)!.data).response).toEqual(JSON.parse(JSON.stringify(whole)));
      const compacted = openaiCompactCaller.response.encode(result, wire);
      expect(aCompaction.satisfied(compacted)).toBe(true);
      expect(compacted.output).toEqual(whole.output as OutputCompaction[]);
    });
  });

  test("that fails is failed at any place, and leaves its item open", () => {
    forAll([answers, fc.nat()], 100, (events, where) => {
      const frames = new SseDecoder().push(bytes(encoded(events.slice(0, where % events.length))));
      expect(streamProblem("responses", frames)).toBeNull();
      expect(frames.map(({ event }) => event)).not.toContain("response.output_item.done");
      expect(frames.at(-2)?.event).toBe("response.failed");
    });
  });

  test("needs what the request's bytes hold no longer: that it is one, and the newest messages of the user", () => {
    const many = Array.from({ length: 50 }, (_, at) => ({ role: "user", content: `${at}`.padEnd(1_000) }));
    const compact = validateCompactRequest({ model: "acme/writer-1", input: many });
    const { input } = openaiCompactCaller.request.remainder(compact);
    expect(input).toHaveLength(33);
    expect(input.slice(0, -1)).toMatchObject(many.slice(-32));
    expect(wire.input).toEqual([trigger] as typeof wire.input);
  });
});

describe.each(upstreamProtocols.map((protocol): [string, UpstreamCodec] => [protocol, upstreamCodecs[protocol]]))(
  "an engine that speaks %s",
  (_, { request }) => {
    const rendered = (input: object[]) => {
      const decoded = callers.responses.request.decode(validated.responses({ model: "acme/writer-1", input }));
      return request.encode(decoded, { model: "m", stream: true, outputTokens_max: 100 });
    };

    test("reads the summary as a message where the item stands, as the model wrote it", () => {
      forAll([summary], 50, (text) => {
        const item = { type: "compaction", encrypted_content: sealCompaction(text) };
        const body = JSON.stringify(
          rendered([{ role: "user", content: "BEFORE" }, item, { role: "user", content: "AFTER" }]),
        );
        const escaped = JSON.stringify(text).slice(1, -1);
        expect(body).toContain(escaped);
        expect(body.indexOf("BEFORE")).toBeLessThan(body.indexOf("This summary stands in place"));
        expect(body.lastIndexOf(escaped)).toBeLessThan(body.indexOf("AFTER"));
      });
    });
  },
);
