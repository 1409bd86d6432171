/** Real streams of Responses engines, and the answers that are read from them. */
import { describe, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../../src/core/inference/event.ts";
import type { Fault } from "../../../../src/core/inference/fault.ts";
import type { Result } from "../../../../src/core/inference/result.ts";
import { callers, upstreams } from "../codecs.ts";
import { grammarProblem } from "../grammar.ts";
import { decodedBytewise, folded } from "../reading.ts";

const identity = { responseId: `resp_${"0".repeat(31)}1`, createdAtSeconds: 1, model: "acme/writer-1" };

interface Told {
  type: string;
  [key: string]: unknown;
}

const eventsOf = (raw: string) => decodedBytewise(upstreams.responses, identity, raw);

const sse = (...events: Told[]) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");

const answerOf = (...events: Told[]) => folded(eventsOf(sse(...events)));

function faultOf(events: InferenceEvent[]): Fault {
  const last = events.at(-1);
  if (last?.type !== "response-failed") throw new Error("it did not fail");
  return last.fault;
}

const created: Told = { type: "response.created", response: { id: "r", status: "in_progress", output: [] } };
const added = (output_index: unknown, item: object): Told => ({
  type: "response.output_item.added",
  output_index,
  item,
});
const done = (output_index: unknown, item: object): Told => ({ type: "response.output_item.done", output_index, item });
const delta = (kind: string, output_index: unknown, delta: string, more: object = {}): Told => ({
  type: `response.${kind}.delta`,
  output_index,
  delta,
  ...more,
});
const completed = (...output: unknown[]): Told => ({
  type: "response.completed",
  response: { status: "completed", output, usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 } },
});
const message = (text: string, id = "msg_1") => ({
  id,
  type: "message",
  role: "assistant",
  content: [{ type: "output_text", text }],
});
const fn = (name: string, call_id: string, written: string, id = `fc_${call_id}`) => ({
  id,
  type: "function_call",
  call_id,
  name,
  arguments: written,
});
const shown = (result: Result) =>
  result.parts.map(({ head, text }) =>
    head.kind === "tool-call" ? [head.callId, head.toolName, text] : [head.kind, text],
  );

describe("text", () => {
  const same: Record<string, Told[]> = {
    "the whole lifecycle": [
      created,
      added(0, { id: "msg_1", type: "message", content: [] }),
      {
        type: "response.content_part.added",
        output_index: 0,
        content_index: 0,
        part: { type: "output_text", text: "" },
      },
      delta("output_text", 0, "Hel"),
      delta("output_text", 0, "lo"),
      { type: "response.output_text.done", output_index: 0, content_index: 0, text: "Hello" },
      {
        type: "response.content_part.done",
        output_index: 0,
        content_index: 0,
        part: { type: "output_text", text: "Hello" },
      },
      done(0, message("Hello")),
      completed(message("Hello")),
    ],
    "deltas and the end alone": [
      delta("output_text", undefined, "Hel"),
      delta("output_text", undefined, "lo"),
      completed(),
    ],
    "deltas by item id": [
      added(undefined, { id: "msg_1", type: "message" }),
      delta("output_text", undefined, "Hello", { item_id: "msg_1" }),
      completed(message("Hello")),
    ],
    "no deltas, but a whole part": [
      added(0, { type: "message" }),
      { type: "response.output_text.done", output_index: 0, text: "Hello" },
      completed(),
    ],
    "a whole item": [created, done(0, message("Hello")), completed(message("Hello"))],
    "the final object alone": [completed(message("Hello"))],
    "other ids in the final object": [
      added(0, { id: "msg_1", type: "message" }),
      delta("output_text", 0, "Hello"),
      completed(message("Hello", "msg_other")),
    ],
    "events and items that nobody knows": [
      created,
      { type: "response.new_thing", output_index: 0, delta: "x" },
      { type: "keepalive" },
      added(0, { id: "ws_1", type: "web_search_call" }),
      done(0, { id: "ws_1", type: "web_search_call" }),
      added(1, { id: "msg_1", type: "message" }),
      delta("output_text", 1, "Hello"),
      completed({ id: "ws_1", type: "web_search_call" }, message("Hello")),
    ],
  };
  test.each(Object.entries(same))("%s", (_, events) => {
    const result = answerOf(...events);
    expect(shown(result)).toEqual([["text", "Hello"]]);
    expect(result.reason).toBe("stop");
    expect(result.usage).toMatchObject({ inputTokens: 3, outputTokens: 2, source: "reported" });
  });

  test("the final object's items are told apart by their ids, where some of those that were sent are missing", () => {
    const result = answerOf(
      added(0, { id: "msg_1", type: "message" }),
      delta("output_text", 0, "first"),
      added(1, { id: "msg_2", type: "message" }),
      completed(message("second", "msg_2")),
    );
    expect(shown(result)).toEqual([
      ["text", "first"],
      ["text", "second"],
    ]);
  });

  test("a refusal is one, in pieces or whole", () => {
    const refusal = { id: "m", type: "message", content: [{ type: "refusal", refusal: "No." }] };
    expect(shown(answerOf(completed(refusal)))).toEqual([["refusal", "No."]]);
    expect(
      shown(answerOf(added(0, { id: "m", type: "message" }), delta("refusal", 0, "No."), completed(refusal))),
    ).toEqual([["refusal", "No."]]);
  });
});

describe("calls", () => {
  const calls = [fn("f", "a", '{"x":1}'), fn("g", "b", '{"y":2}')];
  const empty = (call: object) => ({ ...call, arguments: "" });
  const args = "function_call_arguments";
  const same: Record<string, Told[]> = {
    "one after the other": [
      added(0, empty(calls[0]!)),
      delta(args, 0, '{"x":1}'),
      done(0, calls[0]!),
      added(1, empty(calls[1]!)),
      delta(args, 1, '{"y":2}'),
      done(1, calls[1]!),
      completed(...calls),
    ],
    "side by side": [
      added(0, empty(calls[0]!)),
      added(1, empty(calls[1]!)),
      delta(args, 1, '{"y"'),
      delta(args, 0, '{"x":1}'),
      delta(args, 1, ":2}"),
      done(1, calls[1]!),
      done(0, calls[0]!),
      completed(...calls),
    ],
    "always index 0": [
      added(0, empty(calls[0]!)),
      delta(args, 0, '{"x":1}'),
      done(0, calls[0]!),
      added(0, empty(calls[1]!)),
      delta(args, 0, '{"y":2}'),
      done(0, calls[1]!),
      completed(...calls),
    ],
    "arguments at the end alone": [
      added(0, empty(calls[0]!)),
      { type: `response.${args}.done`, output_index: 0, arguments: '{"x":1}' },
      added(1, empty(calls[1]!)),
      done(1, calls[1]!),
      completed(),
    ],
    "the final object alone": [completed(...calls)],
  };
  test.each(Object.entries(same))("%s", (_, events) => {
    const result = answerOf(...events);
    expect(shown(result)).toEqual([
      ["a", "f", '{"x":1}'],
      ["b", "g", '{"y":2}'],
    ]);
    expect(result.reason).toBe("tool_calls");
  });

  test("a call without arguments has an empty object, unless it is incomplete", () => {
    const call = fn("f", "a", "");
    expect(shown(answerOf(added(0, call), done(0, call), completed(call)))).toEqual([["a", "f", "{}"]]);
    expect(shown(answerOf(completed(call)))).toEqual([["a", "f", "{}"]]);
    const cut = { ...call, status: "incomplete" };
    expect(shown(answerOf(added(0, call), done(0, cut), completed(cut)))).toEqual([["a", "f", ""]]);
    const custom = { type: "custom_tool_call", id: "ctc_a", call_id: "a", name: "f", input: "" };
    expect(shown(answerOf(added(0, custom), done(0, custom), completed(custom)))).toEqual([["a", "f", ""]]);
  });

  test("ids are made where there are none, and made unique where one is repeated", () => {
    const result = answerOf(completed(fn("f", "", "{}", "1"), fn("f", "x", "{}", "2"), fn("f", "x", "{}", "3")));
    const ids = shown(result).map(([id]) => id);
    expect(new Set(ids).size).toBe(3);
    expect(ids[1]).toBe("x");
  });

  test("custom and namespaced calls are told as such", () => {
    const custom = { id: "1", type: "custom_tool_call", call_id: "c", name: "p", input: "ls" };
    const spaced = { ...fn("spawn", "d", "{}"), namespace: "agents" };
    expect(answerOf(completed(custom, spaced)).parts.map(({ head }) => head)).toEqual([
      { kind: "tool-call", callId: "c", toolName: "p", custom: true },
      { kind: "tool-call", callId: "d", toolName: "spawn", namespace: "agents" },
    ]);
  });

  test("a call without a name is an answer that cannot be read", () => {
    expect(faultOf(eventsOf(sse(completed(fn("", "a", "{}"))))).code).toBe("upstream_unavailable");
  });
});

describe("reasoning", () => {
  const item = (more: object) => ({ id: "rs_1", type: "reasoning", summary: [], ...more });
  const said: Record<string, Told[]> = {
    "as text": [added(0, item({})), delta("reasoning_text", 0, "a\n\nb"), completed()],
    "as Open Responses names it": [added(0, item({})), delta("reasoning", 0, "a\n\nb"), completed()],
    "as a summary of two parts": [
      added(0, item({})),
      delta("reasoning_summary_text", 0, "a", { summary_index: 0 }),
      delta("reasoning_summary_text", 0, "b", { summary_index: 1 }),
      completed(),
    ],
    "as text and as a summary": [
      added(0, item({})),
      delta("reasoning_text", 0, "a\n\nb"),
      delta("reasoning_summary_text", 0, "short", { summary_index: 0 }),
      completed(item({ summary: [{ type: "summary_text", text: "short" }] })),
    ],
    "as a summary, and then as text, of which the first is what was told": [
      added(0, item({})),
      delta("reasoning_summary_text", 0, "a\n\nb", { summary_index: 0 }),
      delta("reasoning_text", 0, "a, and because of it b"),
      completed(item({ content: [{ type: "reasoning_text", text: "a, and because of it b" }] })),
    ],
    "in the final object": [completed(item({ content: [{ type: "reasoning_text", text: "a\n\nb" }] }))],
    "in the final object, as a summary": [
      completed(item({ summary: ["a", "b"].map((text) => ({ type: "summary_text", text })) })),
    ],
    "in the final object, both ways": [
      completed(
        item({
          summary: [{ type: "summary_text", text: "short" }],
          content: [{ type: "reasoning_text", text: "a\n\nb" }],
        }),
      ),
    ],
  };
  test.each(Object.entries(said))("%s", (_, events) => {
    expect(shown(answerOf(...events))).toEqual([["reasoning", "a\n\nb"]]);
  });

  test("what is encrypted belongs to its text, or is all there is; an empty item is none", () => {
    const sealed = answerOf(
      added(0, item({ encrypted_content: "early" })),
      delta("reasoning_summary_text", 0, "a"),
      done(0, item({ encrypted_content: "E" })),
      completed(item({ encrypted_content: "E" })),
    );
    expect(sealed.parts).toEqual([{ head: { kind: "reasoning" }, text: "a", signature: "E" }]);
    expect(answerOf(completed(item({ encrypted_content: "E" }))).parts).toEqual([
      { head: { kind: "reasoning", encrypted: "E" }, text: "" },
    ]);
    expect(answerOf(added(0, item({})), done(0, item({})), completed(item({}))).parts).toEqual([]);
  });
});

describe("engines that nobody here wrote", () => {
  test("llama.cpp ends all its items with the answer: each ends when the next begins, and what goes on is a part of its own", () => {
    const [thought, said] = [{ id: "rs_1", type: "reasoning", encrypted_content: "", summary: [] }, message("I look.")];
    const told = { ...thought, content: [{ type: "reasoning_text", text: "hm" }] };
    const call = fn("f", "a", "{}");
    const events = eventsOf(
      sse(
        created,
        { type: "response.output_item.added", item: { ...thought, content: [] } },
        { type: "response.reasoning_text.delta", item_id: "rs_1", delta: "hm" },
        { type: "response.output_item.added", item: { ...said, content: [] } },
        { type: "response.output_text.delta", item_id: "msg_1", delta: "I " },
        { type: "response.output_text.delta", item_id: "msg_1", delta: "look." },
        { type: "response.output_item.added", item: { ...call, arguments: "" } },
        { type: "response.function_call_arguments.delta", item_id: call.id, delta: "{}" },
        { type: "response.reasoning_text.delta", item_id: "rs_1", delta: "So." },
        { type: "response.output_item.done", item: told },
        { type: "response.output_text.done", item_id: "msg_1", text: "I look." },
        { type: "response.output_item.done", item: said },
        { type: "response.output_item.done", item: call },
        completed(told, said, call),
      ),
    );
    expect(shown(folded(events))).toEqual([
      ["reasoning", "hm"],
      ["text", "I look."],
      ["a", "f", "{}"],
      ["reasoning", "So."],
    ]);
    const order = events.flatMap((event) => ("index" in event ? [`${event.type} ${event.index}`] : []));
    expect(order.slice(0, 7)).toEqual([
      ...["part-start 0", "part-delta 0", "part-end 0"],
      ...["part-start 1", "part-delta 1", "part-delta 1", "part-end 1"],
    ]);
  });

  test("what llama.cpp cannot read of a request is the caller's to change, though it says 500", () => {
    const said = { error: { code: 500, message: "image input is not supported - hint: mmproj", type: "server_error" } };
    const fault = upstreams.responses.fault.decode(500, said);
    expect(fault).toMatchObject({ code: "invalid_value", details: { param: "messages" } });
    expect(callers.responses.fault.encode(fault, "req_1")).toMatchObject({ error: { param: "input" } });
  });
});

describe("ends", () => {
  const incomplete = (reason?: string): Told => ({
    type: "response.incomplete",
    response: { status: "incomplete", incomplete_details: reason ? { reason } : null, output: [message("Hel")] },
  });
  test.each([
    ["max_output_tokens", "length"],
    ["content_filter", "content_filter"],
    ["content-filter", "content_filter"],
    ["something new", "length"],
    [undefined, "length"],
  ])("incomplete because of %s is %s", (said, reason) => {
    expect(answerOf(incomplete(said)).reason).toBe(reason as Result["reason"]);
  });

  test("an answer that used up its cap was cut by it, though its engine calls it completed", () => {
    const ended = (cap: number | undefined, ...output: unknown[]) => {
      const response = (completed(...output) as unknown as { response: unknown }).response;
      const streamed = upstreams.responses.stream.decoder(identity, { outputTokens_max: cap });
      const events = [...streamed.push({ data: JSON.stringify(completed(...output)) }), ...streamed.end()];
      const whole = upstreams.responses.response.decode(response, identity, { outputTokens_max: cap });
      expect(folded(whole)).toEqual(folded(events));
      return folded(whole).reason;
    };
    expect([2, 3, undefined].map((cap) => ended(cap, message("Hel")))).toEqual(["length", "stop", "stop"]);
    expect([2, 3].map((cap) => ended(cap, fn("f", "c", '{"x":')))).toEqual(["length", "tool_calls"]);
  });

  const failed = (code: string, text = "secret host"): Told => ({
    type: "response.failed",
    response: { status: "failed", error: { code, message: text } },
  });
  test.each([
    [failed("server_error"), "upstream_unavailable"],
    [failed("rate_limit_exceeded"), "capacity_exceeded"],
    [failed("context_length_exceeded"), "context_length_exceeded"],
    [failed("invalid_prompt"), "invalid_value"],
    [failed("insufficient_quota"), "upstream_unavailable"],
    [failed("server_is_overloaded"), "overloaded"],
    [failed("constructor"), "upstream_unavailable"],
    [{ type: "error", code: "rate_limit_exceeded", message: "secret host" }, "capacity_exceeded"],
    [{ type: "error", error: { type: "invalid_request_error", message: "secret host" } }, "invalid_value"],
    [{ type: "", error: { message: "prompt is too long" } }, "context_length_exceeded"],
    [{ type: "response.cancelled", response: {} }, "upstream_unavailable"],
  ] as [Told, string][])("%j is %s, and the engine's words go nowhere", (event, code) => {
    const fault = faultOf(eventsOf(sse(created, event)));
    expect(fault.code as string).toBe(code);
    expect(fault.message).not.toContain("secret");
  });

  test("whatever is cut has failed: no end, half an event, no JSON, nothing at all", () => {
    const begun = sse(created, added(0, { type: "message" }), delta("output_text", 0, "Hel"), done(0, message("Hel")));
    for (const raw of [begun, "data: [DONE]\n\n", `${begun}data: {"type":"resp`, `${begun}data: {x}\n\n`, ""])
      expect(faultOf(eventsOf(raw)).code).toBe("upstream_unavailable");
  });

  test("[DONE] ends a text without another end, and no call", () => {
    const text = sse(created, added(0, { type: "message" }), delta("output_text", 0, "Hel"));
    expect(folded(eventsOf(`${text}data: [DONE]\n\n`)).reason).toBe("stop");
    const call = sse(created, added(0, { type: "function_call", call_id: "a", name: "f", arguments: "" }));
    expect(faultOf(eventsOf(`${call}data: [DONE]\n\n`)).code).toBe("upstream_unavailable");
  });

  test("vLLM's response.completed ends as its response's status says", () => {
    const ended = (status: string, more: object = {}) =>
      eventsOf(
        sse(created, { type: "response.completed", response: { status, output: [fn("f", "c", "{")], ...more } }),
      );
    const details = { incomplete_details: { reason: "max_output_tokens" } };
    expect(folded(ended("incomplete", details)).reason).toBe("length");
    expect(folded(ended("completed")).reason).toBe("tool_calls");
    for (const status of ["cancelled", "failed"]) expect(faultOf(ended(status)).code).toBe("upstream_unavailable");
  });

  test("an incomplete answer that broke off is none", () => {
    const response = { output: [], incomplete_details: { reason: "network_error" } };
    const events = eventsOf(sse(created, { type: "response.incomplete", response }));
    expect(faultOf(events).code).toBe("upstream_unavailable");
  });

  test("nothing counts after the end", () => {
    expect(shown(answerOf(completed(message("a")), delta("output_text", 3, "b"), failed("server_error")))).toEqual([
      ["text", "a"],
    ]);
  });
});

describe("whole replies", () => {
  const events = (reply: unknown) => {
    const told = upstreams.responses.response.decode(reply, identity);
    expect(grammarProblem(told)).toBeNull();
    return told;
  };
  test("are the final object, with a status or without", () => {
    for (const status of ["completed", undefined]) {
      const told = events({ status, error: null, output: [message("a")], usage: null });
      expect(shown(folded(told))).toEqual([["text", "a"]]);
    }
  });

  test.each([
    [null],
    ["text"],
    [[]],
    [{}],
    [{ error: { message: "x" } }],
    [{ status: "failed", error: { code: "server_error" } }],
    [{ status: "in_progress", output: [message("a")] }],
    [{ status: "queued" }],
    [{ status: "nonsense", output: [] }],
  ])("%j is no answer", (reply) => {
    expect(faultOf(events(reply)).code).toBe("upstream_unavailable");
  });

  test("an engine's refusal is ours, in our words", () => {
    const fault = upstreams.responses.fault.decode(400, { error: { message: "secret", code: "x" } });
    expect([fault.code, fault.message.includes("secret")]).toEqual(["invalid_value", false]);
  });
});
