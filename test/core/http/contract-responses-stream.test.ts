/** The check of a Responses stream against the contract: it lets pass what our encoder writes, and finds what is broken. */
import { describe, expect, test } from "bun:test";
import type { InferenceEvent, PartHead } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
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
const last = whole.length - 1;
const framed = (events: StreamEvent[]) => events.map(event).join("");
const numbered = (events: StreamEvent[]) => events.map((each, sequence_number) => ({ ...each, sequence_number }));
const done = "data: [DONE]\n\n";
/** The problems found in a stream of these events, with the numbers that they have, and `[DONE]`. */
const asTheyAre = (events: StreamEvent[]) => problemsOf(framed(events) + done);
/** The problems found in a stream after a change of its events, which are numbered anew and followed by `[DONE]`. */
const changed = (change: (events: StreamEvent[]) => StreamEvent[], of = whole) =>
  asTheyAre(numbered(change(structuredClone(of))));
/** Whether an event is of this type, which tests name without `response.`. */
const isOf = (name: string) => (event: StreamEvent) => event.type === `response.${name}`;
const without = (name: string, of = whole) => changed((events) => events.filter((each) => !isOf(name)(each)), of);
const twice = (name: string) =>
  changed((events) => events.flatMap((each) => (isOf(name)(each) ? [each, each] : [each])));
/** The problems after changing some keys of the first event of a type. */
const altered = (name: string, keys: object | ((event: StreamEvent) => object), of = whole) =>
  changed((events) => {
    const at = events.findIndex(isOf(name));
    return events.with(at, { ...events[at]!, ...(typeof keys === "function" ? keys(events[at]!) : keys) });
  }, of);
/** The problems after changing the item's id in the first event of a type: its last digit is replaced by 1. */
const itemChanged = (name: string) =>
  altered(name, ({ item }) => ({ item: { ...item, id: String(item!.id).replace(/.$/, "1") } }));
/** The problems after replacing a text wherever it occurs in the JSON of the events. */
const rewritten = (from: RegExp | string, to: string, of = whole) =>
  changed((events) => JSON.parse(JSON.stringify(events).replaceAll(from, to)), of);
/** The problems after changing the status of every completed item, in its event and in the final object. */
const everyItem = (status: string) => rewritten(/"status":"completed",(?!"error")/g, `"status":"${status}",`);
const cut = (end: StreamEvent): StreamEvent => ({
  ...end,
  type: "response.incomplete",
  response: { ...end.response!, status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
});
/** The problems after changing keys of the final object. */
const atTheEnd = (keys: (response: { output: Keys[] }) => object) =>
  changed((events) =>
    events.with(last, { ...events[last]!, response: { ...events[last]!.response!, ...keys(events[last]!.response!) } }),
  );

describe("finds nothing wrong with", () => {
  const fine: Record<string, string[]> = {
    "a stream": asTheyAre(whole),
    "a stream whose reasoning is a summary": asTheyAre(summarized),
    "a stream that was taken apart and put together": changed((events) => events),
    "a stream that is silent for a while": twice("in_progress"),
    "a stream that is silent within an item": changed((events) => events.toSpliced(6, 0, events[1]!)),
    "a stream that the limit cuts": asTheyAre(eventsOf({ type: "response-end", reason: "length" })),
    "a stream that fails": asTheyAre(eventsOf({ type: "response-failed", fault: new Fault("overloaded", "Because.") })),
  };
  for (const [name, problems] of Object.entries(fine)) test(name, () => expect(problems).toEqual([]));
});

describe("finds", () => {
  const wrong: Record<string, [says: string, problems: string[]]> = {
    "a gap in the sequence": ["sequence number is 2, not 1", asTheyAre(numbered(whole).toSpliced(1, 1))],
    "a sequence that begins with 1": [
      "sequence number is 1, not 0",
      asTheyAre(numbered([...whole, whole[0]!]).slice(1)),
    ],
    "a number twice": ["sequence number is 1, not 5", asTheyAre(whole.toSpliced(5, 0, whole[1]!))],
    "a response without its start": ["stands where 'response.created' is due", without("created")],
    "a response that is started twice": ["stands where 'response.in_progress' is due", twice("created")],
    "a response that is not in progress": ["stands where 'response.in_progress' is due", without("in_progress")],
    "a response in progress with an answer": [
      "has begun to answer",
      altered("in_progress", { response: whole[last]!.response }),
    ],
    "a response in progress that was asked something else": [
      "holds another response",
      altered("in_progress", { response: { ...whole[0]!.response, instructions: "x" } }),
    ],
    "an item that was not added": ["the item 0, which was not added", without("output_item.added")],
    "an item that is added twice": ["Two items have one id", twice("output_item.added")],
    "an item out of order": ["The item 1 is added as number 0", altered("output_item.added", { output_index: 1 })],
    "an item that is added before the last one is done": [
      "The item 4 is added before the item 3 is done",
      changed((events) => {
        const added = events.findIndex((each) => each.type === "response.output_item.added" && each.output_index === 4);
        const done = events.findLastIndex((each) => each.output_index === 3);
        return events.with(done, events[added]!).with(added, events[done]!);
      }),
    ],
    "items of which all are done at the end alone": [
      "The item 1 is added before the item 0 is done",
      changed((events) => {
        const isDone = ({ type }: StreamEvent) => type === "response.output_item.done";
        const others = events.filter((each) => !isDone(each));
        return others.toSpliced(-1, 0, ...events.filter(isDone));
      }),
    ],
    "an item that is not done": ["The item 0 is not done", without("output_item.done")],
    "an item that is done twice": ["'response.output_item.done' follows 'done'", twice("output_item.done")],
    "an item whose id changes when it is done": ["is done as 'rs_", itemChanged("output_item.done")],
    "an item whose id changes after it was added": [
      "The item 0 has another id in the response",
      itemChanged("output_item.added"),
    ],
    "an item that begins with its text": [
      "added with an answer in it",
      altered("output_item.added", { item: whole[last]!.response!.output[0] }),
    ],
    "an item that begins as done": [
      "added with an answer in it",
      altered("output_item.added", { item: { ...whole[last]!.response!.output[0], content: [] } }),
    ],
    "a second part": ["a second part", altered("output_text.delta", { content_index: 1 })],
    "a second part of a summary": [
      "a second part",
      altered("reasoning_summary_text.delta", { summary_index: 1 }, summarized),
    ],
    "a summary that is not begun": [
      "follows 'added' in the item 0",
      without("reasoning_summary_part.added", summarized),
    ],
    "a summary that is not told whole": [
      "'response.reasoning_summary_part.done' follows 'delta'",
      without("reasoning_summary_text.done", summarized),
    ],
    "a summary that is not ended": [
      "'response.output_item.done' follows 'whole'",
      without("reasoning_summary_part.done", summarized),
    ],
    "a summary whose delta is lost": [
      "'response.reasoning_summary_text.done' is not what its deltas add up to",
      altered("reasoning_summary_text.delta", { delta: "" }, summarized),
    ],
    "the model's own text within a summary": [
      "'response.reasoning_text.delta' stands in a 'summary_text'",
      altered(
        "reasoning_summary_text.delta",
        { type: "response.reasoning_text.delta", content_index: 0, summary_index: undefined },
        summarized,
      ),
    ],
    "a summary that is the model's own text when it is done": [
      "is done with another part than was told",
      rewritten(
        /"summary":\[\{"type":"summary_text","text":"([^"]+)"\}\],"content":\[\]/g,
        '"summary":[],"content":[{"type":"reasoning_text","text":"$1"}]',
        summarized,
      ),
    ],
    "a summary beside the same text": [
      "is not what its deltas add up to",
      rewritten(
        /("summary":\[\{"type":"summary_text","text":"([^"]+)"\}\]),"content":\[\]/g,
        '$1,"content":[{"type":"reasoning_text","text":"$2"}]',
        summarized,
      ),
    ],
    "a part of another kind": [
      "'response.reasoning_text.delta' stands in a 'refusal'",
      altered("content_part.added", { part: { type: "refusal", refusal: "" } }),
    ],
    "an inner event of another item": [
      "another id than its item",
      altered("output_text.delta", { item_id: `msg_${"1".repeat(36)}` }),
    ],
    "an inner event of an item that is none": [
      "the item 9, which was not added",
      altered("output_text.delta", { output_index: 9 }),
    ],
    "a delta of another kind of item": [
      "'response.refusal.delta' stands in a 'output_text'",
      altered("output_text.delta", { type: "response.refusal.delta", logprobs: undefined }),
    ],
    "a delta that is lost": [
      "'response.output_text.done' is not what its deltas add up to",
      altered("output_text.delta", { delta: "" }),
    ],
    "arguments that are not what was told": [
      "is not what its deltas add up to",
      altered("function_call_arguments.done", { arguments: "{" }),
    ],
    "arguments that are not told whole": ["follows 'delta' in the item 3", without("function_call_arguments.done")],
    "input that is not told whole": ["follows 'delta' in the item 4", without("custom_tool_call_input.done")],
    "a part that is not begun": ["follows 'added' in the item 1", without("content_part.added")],
    "a part that is not told whole": ["'response.content_part.done' follows 'delta'", without("output_text.done")],
    "a part that is not ended": ["'response.output_item.done' follows 'whole'", without("content_part.done")],
    "a part that is begun twice": ["'response.content_part.added' follows 'part'", twice("content_part.added")],
    "an item that the final object does not have": [
      "has 4 items, and told of 5",
      atTheEnd(({ output }) => ({ output: output.slice(1) })),
    ],
    "an item that only the final object has": [
      "has 6 items, and told of 5",
      atTheEnd(({ output }) => ({ output: [...output, output[0]] })),
    ],
    "another item in the final object": [
      "The item 1 is another in the response",
      atTheEnd(({ output }) => ({ output: output.with(1, output[2]!) })),
    ],
    "another text in the final object": [
      "The item 3 is another in the response",
      atTheEnd(({ output }) => ({ output: output.with(3, { ...output[3], arguments: "" }) })),
    ],
    "another response at the end": ["id changes within the stream", atTheEnd(() => ({ id: `resp_${"1".repeat(32)}` }))],
    "an end of another status": ["holds a response that is 'failed'", atTheEnd(() => ({ status: "failed" }))],
    "a cut whose last item is whole": [
      "The last item of a response that is 'incomplete' is 'completed'",
      changed((events) => events.with(last, cut(events[last]!))),
    ],
    "a whole answer whose item is cut": ["not the last is incomplete", everyItem("incomplete")],
    "an answer whose item is still in progress": ["is done, and in progress", everyItem("in_progress")],
    "a response without its end": ["has no end", without("completed")],
    "a response with two ends": ["comes after the end", twice("completed")],
    "an item after the end": [
      "'response.output_item.added' comes after the end",
      changed((events) => [...events.toSpliced(last, 1), events[last]!, events[2]!]),
    ],
    "a response without [DONE]": ["does not end with [DONE]", problemsOf(framed(whole))],
    "a response with two [DONE]": ["not an event line and a data line", problemsOf(framed(whole) + done + done)],
    "something after [DONE]": ["does not end with [DONE]", problemsOf(framed(whole) + done + event(whole[1]!))],
    "[DONE] with a name": ["does not end with [DONE]", problemsOf(`${framed(whole)}event: done\n${done}`)],
    "an event without a name": [
      "not an event line and a data line",
      problemsOf(framed(whole).replace(/^event.*\n/, "") + done),
    ],
    "an event with another name": [
      "The event 'created' holds a 'response.created'",
      problemsOf(framed(whole).replace("event: response.created", "event: created") + done),
    ],
    "an event that nobody knows": [
      "'type' must be one of",
      altered("output_text.delta", { type: "response.text.delta" }),
    ],
    "a key too many": ["'extra' is not a known field", altered("output_text.delta", { extra: 1 })],
    "a response that is created again, later": [
      "The response is created again",
      changed((events) => events.toSpliced(5, 0, events[0]!)),
    ],
    "another part than was told": [
      "holds another part",
      altered("content_part.done", { part: { type: "reasoning_text", text: "" } }),
    ],
    "another text when an item is done": [
      `The item 'fc_${"0".repeat(35)}3' is not what its deltas add up to`,
      rewritten(
        '"status":"completed","call_id":"c1","name":"f","arguments":"{}"',
        '"status":"completed","call_id":"c1","name":"f","arguments":""',
      ),
    ],
  };
  for (const [name, [says, problems]] of Object.entries(wrong))
    test(name, () => expect(problems).toContainEqual(expect.stringContaining(says)));
});
