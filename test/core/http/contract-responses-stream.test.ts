/** The check of a Responses stream against the contract accepts the streams of our encoder, and finds broken ones. */
import { describe, expect, test } from "bun:test";
import type { InferenceEvent, PartHead } from "../../../src/core/inference/event.ts";
import { openaiResponsesCaller } from "../../../src/core/protocol/openai-responses/codec.ts";
import { validateResponsesRequest } from "../../../src/core/protocol/openai-responses/validate.ts";
import { responseValidator } from "../../harness/conformance.ts";

const id = `req_${"0".repeat(32)}`;
const check = responseValidator();
const headers = new Headers({
  "content-type": "text/event-stream; charset=utf-8",
  ...{ "x-service-request-id": id, "x-request-id": id, "request-id": id },
});
const problemsOf = (body: string) => check({ method: "POST", path: "/v1/responses", status: 200, headers, body });
const event = (data: StreamEvent) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

/** A stream as callers get it, of an answer with every kind of item, two calls of which the engine interleaves. */
function eventsOf(end: InferenceEvent, more: object = {}): StreamEvent[] {
  const identity = { responseId: `resp_${"0".repeat(32)}`, createdAtSeconds: 1, model: "a/b" };
  const custom = { type: "custom", name: "patch" };
  const wire = validateResponsesRequest({ model: "a/b", input: "x", tools: [custom], ...more });
  const encoder = openaiResponsesCaller.stream.encoder(wire, { requestId: id, identity, inputTokensEstimate: 1 });
  const begin = (index: number, part: PartHead): InferenceEvent => ({ type: "part-start", index, part });
  const delta = (index: number, text: string): InferenceEvent => ({ type: "part-delta", index, delta: text });
  const over = (index: number): InferenceEvent => ({ type: "part-end", index });
  const events: InferenceEvent[] = [
    { type: "response-start", ...identity },
    ...[begin(0, { kind: "reasoning" }), delta(0, "Hm"), delta(0, "m"), over(0)],
    ...[begin(1, { kind: "text" }), delta(1, "H"), delta(1, "i"), over(1)],
    ...[begin(2, { kind: "refusal" }), delta(2, "No"), over(2)],
    ...[begin(3, { kind: "tool-call", callId: "c1", toolName: "f" }), delta(3, "{")],
    ...[begin(4, { kind: "tool-call", callId: "c2", toolName: "patch", custom: true }), delta(4, "x")],
    ...[delta(3, "}"), over(4), over(3)],
    end,
  ];
  const frames = events.flatMap((each) => encoder.push(each));
  return frames.slice(0, -1).map(({ data }) => JSON.parse(data) as StreamEvent);
}
type StreamEvent = { type: string; item?: Keys; response?: { output: Keys[] } & Keys } & Keys;
type Keys = Record<string, unknown>;

const whole = eventsOf({ type: "response-end", reason: "stop" });
/** The same answer, with its reasoning as a summary. */
const summarized = eventsOf({ type: "response-end", reason: "stop" }, { reasoning: { summary: "auto" } });
const framed = (events: StreamEvent[]) => events.map(event).join("");
const numbered = (events: StreamEvent[]) => events.map((each, sequence_number) => ({ ...each, sequence_number }));
const done = "data: [DONE]\n\n";
/** The problems found in a stream of these events, with unchanged sequence numbers, and `[DONE]` at the end. */
const asTheyAre = (events: StreamEvent[]) => problemsOf(framed(events) + done);
/** The paths of all values inside `value`: the names and indices that lead to them. */
function pathsIn(value: unknown): string[][] {
  if (typeof value !== "object" || value === null) return [[]];
  return Object.entries(value).flatMap(([name, inner]) => pathsIn(inner).map((path) => [name, ...path]));
}

/** The value with a different one at the path: of the same type, unless that was null. */
function altered(value: unknown, [name, ...rest]: string[]): unknown {
  if (name !== undefined && Array.isArray(value)) return value.with(Number(name), altered(value[Number(name)], rest));
  if (name !== undefined) return { ...(value as Keys), [name]: altered((value as Keys)[name], rest) };
  return typeof value === "number" ? value + 1 : typeof value === "boolean" ? !value : `${value}x`;
}

/** Whether the value is a parameter of the response: besides the output and how it ended, no rule compares these. */
const isParameter = (type: string, path: string) =>
  type === "response.completed" && /^response\.(?!id|object|status|output|completed_at|error|incomplete)/.test(path);
/** Whether the value is a function's name or call id: whole items repeat them, and no rule compares the repetition. */
const isOfCall = (path: string) => /^(item\.)?(name|call_id)$/.test(path);

describe.each([
  ["an answer", whole],
  ["an answer whose reasoning is a summary", summarized],
])("finds in %s:", (_, events) => {
  test("nothing wrong with it as it is, or silent for a while", () => {
    const [, silence] = events;
    for (const right of [
      events,
      numbered(events.toSpliced(1, 0, silence!)),
      numbered(events.toSpliced(6, 0, silence!)),
    ])
      expect(asTheyAre(right)).toEqual([]);
  });

  test("each event that is left out, comes twice or stands anywhere else", () => {
    for (const [at, event] of events.entries()) {
      const others = events.toSpliced(at, 1);
      expect([at, asTheyAre(numbered(others))]).not.toEqual([at, []]);
      for (let to = 0; to < events.length; to++)
        if (to !== at) expect([at, to, asTheyAre(numbered(others.toSpliced(to, 0, event)))]).not.toEqual([at, to, []]);
      const repeated = asTheyAre(numbered(events.toSpliced(at, 0, event)));
      expect([event.type, repeated.length > 0]).toEqual([event.type, event.type !== "response.in_progress"]);
    }
  });

  test("each value that is another than it should be", () => {
    for (const [at, event] of events.entries()) {
      for (const path of pathsIn(event)) {
        const name = path.join(".");
        if (isParameter(event.type, name) || isOfCall(name)) continue;
        const problems = asTheyAre(events.with(at, altered(event, path) as StreamEvent));
        expect([event.type, name, problems]).not.toEqual([event.type, name, []]);
      }
    }
  });
});

test.each([
  ["a stream without [DONE]", "does not end with [DONE]", framed(whole)],
  ["a stream with two [DONE]", "not an event line and a data line", framed(whole) + done + done],
  ["something after [DONE]", "does not end with [DONE]", framed(whole) + done + event(whole[1]!)],
  ["an event without a name", "not an event line and a data line", framed(whole).replace(/^event.*\n/, "") + done],
  [
    "an event with another name",
    "The event 'created' holds a 'response.created'",
    framed(whole).replace("event: response.created", "event: created") + done,
  ],
])("finds %s", (_, says, stream) => expect(problemsOf(stream)).toContainEqual(expect.stringContaining(says)));
