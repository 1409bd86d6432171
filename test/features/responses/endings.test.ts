/**
 * A stream whose node is gone ends with its protocol's error, whatever was stored before: nothing, a part, or
 * everything but the end. The decoder for engines of that protocol reads such a stream as failed.
 */
import { expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { CallerCodec, UpstreamCodec } from "../../../src/core/protocol/codec.ts";
import { encodeSse } from "../../../src/core/sse/decode.ts";
import { endingOf } from "../../../src/features/responses/replay.ts";
import { callers, upstreams } from "../../core/protocol/codecs.ts";
import { begin, call, over, part, piece, text, writtenBy } from "../../core/protocol/events.ts";
import { grammarProblem } from "../../core/protocol/grammar.ts";
import { bytes, decodedBy } from "../../core/protocol/reading.ts";

const identity = { responseId: `resp_${"0".repeat(32)}`, createdAtSeconds: 1_790_000_000, model: "acme/writer-1" };
const requestId = `req_${"0".repeat(32)}`;
const gone = new Fault("upstream_unavailable", "The node is gone.", { retryAfterSeconds: 1 });

const start: InferenceEvent = { type: "response-start", ...identity };
const answer: InferenceEvent[] = [
  start,
  ...part(0, text, "Twelve ", "geese."),
  ...[begin(1, call("look", "call_1")), piece(1, '{"x":'), piece(1, "1}")],
];

interface Protocol {
  caller: CallerCodec<never, unknown>;
  upstream: UpstreamCodec;
  wire: object;
}

const chatWire = { model: "m", messages: [], stream: true };
const wires = { chat: chatWire, messages: chatWire, responses: { model: "m", input: "x", stream: true } };
const operations = { chat: "chat.completions", messages: "messages", responses: "responses" } as const;
const endingFor = (name: keyof typeof wires) => endingOf({ operation: operations[name] }, { ...wires[name] }, identity);
const protocolOf = (name: keyof typeof wires) =>
  ({ caller: callers[name], upstream: upstreams[name], wire: wires[name] }) as unknown as Protocol;

/** The frames of a stream: two heartbeats, and then the response. */
function written({ caller, wire }: Protocol): string[] {
  const encoder = caller.stream.encoder(wire as never, { requestId, identity, inputTokensEstimate: 1 });
  const beats = [encoder.heartbeat(), encoder.heartbeat()];
  const frames = answer.flatMap((event) => encoder.push(event)).map(encodeSse);
  return [...beats, ...frames].flatMap((text) => text.split(/(?<=\n\n)/)).filter((frame) => frame !== "");
}

for (const name of ["chat", "messages", "responses"] as const)
  test(`${name}: wherever it is cut, it ends in a failure, and what was written stays`, () => {
    const protocol = protocolOf(name);
    const frames = written(protocol);
    expect(frames.length).toBeGreaterThan(4);
    for (let cut = 0; cut <= frames.length; cut++) {
      const sent = frames.slice(0, cut);
      const ending = endingFor(name);
      for (const frame of sent) ending.saw(frame);
      const whole = sent.join("") + ending.end(gone, requestId);
      const events = decodedBy(protocol.upstream, identity, [bytes(whole)]);
      expect([grammarProblem(events), events.at(-1)?.type]).toEqual([null, "response-failed"]);
      expect(whole).toContain("The node is gone.");
      const deltas = events.flatMap((event) => (event.type === "part-delta" ? [event.delta] : []));
      if (cut === frames.length) expect(deltas.join("")).toBe('Twelve geese.{"x":1}');
    }
  });

test("responses: the numbers go on without a gap, and one that never began begins first", () => {
  const frames = written(protocolOf("responses"));
  for (let cut = 0; cut <= frames.length; cut++) {
    const ending = endingFor("responses");
    const sent = frames.slice(0, cut).join("");
    ending.saw(sent);
    const whole = sent + ending.end(gone, requestId);
    const data = [...whole.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json!));
    expect(data.map(({ sequence_number }) => sequence_number)).toEqual(data.map((_, index) => index));
    expect([data[0].type, data.at(-1).type, data.at(-1).response.id]).toEqual([
      "response.created",
      "response.failed",
      identity.responseId,
    ]);
    expect(whole.endsWith("data: [DONE]\n\n")).toBeTrue();
  }
});

test("responses: a text with U+2028 and U+2029, which end lines in JavaScript alone, stays whole", () => {
  const deltas = ["a\u2028b", "if (x) {\n}\u2028", "}\u2029data: {"];
  const { stream } = callers.responses;
  const encoder = stream.encoder(wires.responses as never, { requestId, identity, inputTokensEstimate: 1 });
  const sent = writtenBy(encoder, [start, ...part(0, text, ...deltas), over("stop")]).map(encodeSse);
  const frames = sent.filter((frame) => !/response\.completed|\[DONE\]/.test(frame));
  for (const cut of [frames.length, frames.findIndex((frame) => frame.includes("output_text.done"))]) {
    const ending = endingFor("responses");
    ending.saw(frames.slice(0, cut).join(""));
    const data = ending.end(gone, requestId).split("\n")[1]!.slice("data: ".length);
    const { sequence_number, response } = JSON.parse(data);
    expect([sequence_number, response.output[0].content[0].text]).toEqual([cut, deltas.join("")]);
  }
});
