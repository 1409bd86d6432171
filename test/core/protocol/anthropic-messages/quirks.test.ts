/**
 * Streams of Messages engines, byte for byte, and the answers that are read from them: docs/design/protocols.md, Engine
 * quirks.
 */
import { describe, expect, test } from "bun:test";
import { Fault } from "../../../../src/core/inference/fault.ts";
import { anthropicMessagesUpstream } from "../../../../src/core/protocol/anthropic-messages/codec.ts";
import { grammarProblem } from "../grammar.ts";
import { decodedBytewise, folded } from "../reading.ts";

const identity = { responseId: `msg_${"0".repeat(31)}1`, createdAtSeconds: 1, model: "acme/writer-1" };

const eventsOf = (raw: string) => decodedBytewise(anthropicMessagesUpstream, identity, raw);

const answerOf = (raw: string) => folded(eventsOf(raw));

type Event = { type: string } & Record<string, unknown>;
const raw = (...events: Event[]) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
const start = (usage: unknown = { input_tokens: 25, output_tokens: 1 }): Event => ({
  type: "message_start",
  message: { id: "msg_engine", type: "message", role: "assistant", model: "secret", content: [], usage },
});
const block = (index: number, content_block: unknown): Event => ({ type: "content_block_start", index, content_block });
const delta = (index: number, delta: unknown): Event => ({ type: "content_block_delta", index, delta });
const textDelta = (index: number, text: string) => delta(index, { type: "text_delta", text });
const use = (index: number, id: string, name: string, input: object = {}) =>
  block(index, { type: "tool_use", id, name, input });
const json = (index: number, partial_json: string) => delta(index, { type: "input_json_delta", partial_json });
const stop = (index: number): Event => ({ type: "content_block_stop", index });
const ended = (stop_reason: string | null, more: object = {}, usage: unknown = { output_tokens: 15 }): Event[] => [
  { type: "message_delta", delta: { stop_reason, stop_sequence: null, ...more }, usage },
  { type: "message_stop" },
];
const text = (index: number, ...pieces: string[]) => [
  block(index, { type: "text", text: "" }),
  ...pieces.map((piece) => textDelta(index, piece)),
  stop(index),
];
/**
 * The bytes of a stream of these events, with the beginning and the end that the protocol demands. `whole` ends with
 * the turn, `called` with a tool call.
 */
const whole = (...events: Event[]) => raw(start(), ...events, ...ended("end_turn"));
const called = (...events: Event[]) => raw(start(), ...events, ...ended("tool_use"));
const said = (stream: string) => answerOf(stream).parts.map(({ head, text }) => [head.kind, text]);

describe("a stream", () => {
  test("as the protocol has it: pings, thinking with its signature, text, parallel calls", () => {
    const answer = answerOf(
      raw(
        start({ input_tokens: 25, cache_creation_input_tokens: 3, cache_read_input_tokens: 100, output_tokens: 1 }),
        { type: "ping" },
        block(0, { type: "thinking", thinking: "", signature: "" }),
        delta(0, { type: "thinking_delta", thinking: "hm" }),
        delta(0, { type: "signature_delta", signature: "EqQBCgIYAhIM/+=" }),
        stop(0),
        ...text(1, "I ", "look."),
        use(2, "toolu_1", "f"),
        json(2, ""),
        json(2, '{"x"'),
        { type: "ping" },
        json(2, ":1}"),
        stop(2),
        use(3, "toolu_2", "g"),
        stop(3),
        ...ended("tool_use", {}, { output_tokens: 89, output_tokens_details: { thinking_tokens: 4 } }),
      ),
    );
    expect(answer.parts).toEqual([
      { head: { kind: "reasoning" }, text: "hm", signature: "EqQBCgIYAhIM/+=" },
      { head: { kind: "text" }, text: "I look." },
      { head: { kind: "tool-call", callId: "toolu_1", toolName: "f" }, text: '{"x":1}' },
      { head: { kind: "tool-call", callId: "toolu_2", toolName: "g" }, text: "{}" },
    ]);
    expect(answer).toMatchObject({ ...identity, reason: "tool_calls" });
    expect(answer.usage).toEqual({
      inputTokens: 25,
      cachedInputTokens: 100,
      cacheWriteTokens: 3,
      outputTokens: 89,
      reasoningTokens: 4,
      source: "reported",
    });
  });

  const hello: Record<string, string> = {
    "without pings, ids and usage at its start": raw(
      { type: "message_start", message: {} },
      ...text(0, "hello"),
      ...ended("end_turn"),
    ),
    "without message_start": raw(...text(0, "hello"), ...ended("end_turn")),
    "without indexes": whole(...text(0, "hel", "lo")).replaceAll('"index":0,', ""),
    "without event: lines": whole(...text(0, "hello")).replaceAll(/event: .*\n/g, ""),
    "with types in its event: lines alone": whole(...text(0, "hello")).replaceAll(
      /data: {"type":"(message|content)_[a-z_]+",?/g,
      "data: {",
    ),
    "with the text in the block's beginning": whole(block(0, { type: "text", text: "hello" }), stop(0)),
    "with a block that is never begun": whole(textDelta(0, "hello"), stop(0)),
    "with a block that is never ended": whole(block(0, { type: "text", text: "" }), textDelta(0, "hello")),
    "with empty blocks and empty deltas": whole(...text(0, ""), ...text(1, "", "hello", "")),
    "with events, deltas and blocks that nobody knows": whole(
      { type: "vendor_event", x: 1 },
      block(0, { type: "server_tool_use", id: "s", name: "web_search", input: {} }),
      json(0, '{"q":1}'),
      stop(0),
      block(1, { type: "web_search_tool_result", content: [] }),
      stop(1),
      ...text(2, "hello"),
      delta(2, { type: "compaction_delta", content: "x" }),
    ),
    "with nulls where things could be": raw(
      start(null),
      block(0, { type: "text", text: null, citations: null }),
      textDelta(0, "hello"),
      stop(0),
      ...ended("end_turn", {}, null),
    ),
    "with CRLF, comments and no space after data:": whole(...text(0, "hello"))
      .replaceAll("\n", "\r\n")
      .replaceAll("data: ", ": x\r\ndata:"),
    "with [DONE] behind its end": `${whole(...text(0, "hello"))}data: [DONE]\n\n`,
  };
  for (const [quirk, stream] of Object.entries(hello))
    test(quirk, () => expect(said(stream)).toEqual([["text", "hello"]]));

  test.each(["constructor", "toString", "__proto__"])(
    "a type that every object has, %s, is one that nobody knows",
    (type) => {
      const odd = [block(0, { type: "tool_use", id: "a", name: "f" }), delta(0, { type, text: "no" }), stop(0)];
      expect(said(whole(...odd, ...text(1, "hello")))).toEqual([
        ["tool-call", "{}"],
        ["text", "hello"],
      ]);
      expect(eventsOf(raw({ type: "error", error: { type } })).at(-1)).toMatchObject({ fault: { status: 503 } });
    },
  );

  test("characters cut in the middle", () => {
    expect(said(whole(...text(0, "grüße 🌍")))).toEqual([["text", "grüße 🌍"]]);
  });

  test("text in a block of thinking is a block of its own", () => {
    const stream = whole(block(0, { type: "thinking", thinking: "hm" }), textDelta(0, "so"), stop(0));
    expect(said(stream)).toEqual([
      ["reasoning", "hm"],
      ["text", "so"],
    ]);
  });

  test("redacted thinking is kept byte for byte, and thinking that is left out keeps its signature", () => {
    const { parts } = answerOf(
      whole(
        block(0, { type: "redacted_thinking", data: "EmwKAhgBEgy3va3pzix/" }),
        stop(0),
        block(1, { type: "thinking", thinking: "", signature: "" }),
        delta(1, { type: "signature_delta", signature: "abc=" }),
        stop(1),
        block(2, { type: "thinking", thinking: "", signature: "" }),
        delta(2, { type: "thinking_delta", thinking: "plain" }),
        stop(2),
      ),
    );
    expect(parts).toEqual([
      { head: { kind: "reasoning", encrypted: "EmwKAhgBEgy3va3pzix/" }, text: "" },
      { head: { kind: "reasoning" }, text: "", signature: "abc=" },
      { head: { kind: "reasoning" }, text: "plain", signature: "" },
    ]);
  });

  test("citations are kept for those who read them", () => {
    const citation = {
      type: "char_location",
      cited_text: "a",
      document_index: 0,
      start_char_index: 0,
      end_char_index: 1,
    };
    const { parts } = answerOf(
      whole(
        block(0, { type: "text", text: "", citations: [] }),
        textDelta(0, "a"),
        delta(0, { type: "citations_delta", citation }),
        stop(0),
      ),
    );
    expect(parts[0]?.citations).toEqual([{ protocol: "anthropic-messages", wire: citation }]);
  });

  test("a call whose arguments stand in its beginning, whole; two calls with one id; a call without an id", () => {
    const { parts } = answerOf(
      called(
        ...[0, 1].flatMap((index) => [use(index, "a", "f", { x: index }), stop(index)]),
        block(2, { type: "tool_use", name: "f", input: {} }),
        stop(2),
      ),
    );
    expect(parts.map(({ head, text }) => [head.kind === "tool-call" && head.callId, text])).toEqual([
      ["a", '{"x":0}'],
      ["a_1", '{"x":1}'],
      [`toolu_${"0".repeat(31)}1_0`, "{}"],
    ]);
  });

  test("blocks that overlap keep their own", () => {
    const stream = called(use(0, "a", "f"), use(1, "b", "g"), json(1, '{"y":'), json(0, '{"x":1}'), json(1, "2}"));
    expect(said(stream)).toEqual([
      ["tool-call", '{"x":1}'],
      ["tool-call", '{"y":2}'],
    ]);
  });

  test("blocks that all end with the answer: what is thought or said ends when the next part begins, and goes on after it", () => {
    const events = eventsOf(
      called(
        block(0, { type: "thinking", thinking: "" }),
        delta(0, { type: "thinking_delta", thinking: "hm" }),
        delta(0, { type: "signature_delta", signature: "S" }),
        block(1, { type: "text", text: "" }),
        textDelta(1, "I "),
        textDelta(1, "look."),
        use(2, "a", "f"),
        json(2, "{}"),
        textDelta(1, " So."),
        ...[0, 1, 2].map(stop),
      ),
    );
    expect(folded(events).parts.map(({ text, signature }) => [text, signature])).toEqual([
      ["hm", "S"],
      ["I look.", undefined],
      ["{}", undefined],
      [" So.", undefined],
    ]);
    const order = events.flatMap((event) => ("index" in event ? [`${event.type} ${event.index}`] : []));
    expect(order.slice(0, 7)).toEqual([
      ...["part-start 0", "part-delta 0", "part-end 0"],
      ...["part-start 1", "part-delta 1", "part-delta 1", "part-end 1"],
    ]);
  });

  const ends: [string | null, object, string, string | undefined][] = [
    ["end_turn", {}, "stop", undefined],
    ["max_tokens", {}, "length", undefined],
    ["model_context_window_exceeded", {}, "length", undefined],
    ["stop_sequence", { stop_sequence: "END" }, "stop", "END"],
    ["refusal", {}, "content_filter", undefined],
    ["tool_use", {}, "stop", undefined],
    ["pause_turn", {}, "stop", undefined],
    ["something_new", {}, "stop", undefined],
    ["length", {}, "length", undefined],
    ["MAX_TOKENS", {}, "length", undefined],
    ["sensitive", {}, "content_filter", undefined],
  ];
  for (const [reason, more, expected, sequence] of ends)
    test(`that ends with ${reason}`, () => {
      const answer = answerOf(raw(start(), ...text(0, "x"), ...ended(reason, more)));
      expect([answer.reason, answer.stopSequence]).toEqual([expected, sequence] as never);
    });

  test("whose reason is its last event, with [DONE] behind it or nothing, is whole", () => {
    const whole = [start(), ...text(0, "x"), ...ended("end_turn").slice(0, 1)];
    for (const end of ["", "data: [DONE]\n\n"]) expect(answerOf(raw(...whole) + end).reason).toBe("stop");
    expect(answerOf(`${raw(start(), ...text(0, "x"))}data: [DONE]\n\n`).reason).toBe("stop");
  });

  test("whose usage comes in pieces: totals overwrite, zeros at the start are no count, an explicit 0 at the end is one", () => {
    const usage = (first: unknown, last: unknown) => {
      const events = eventsOf(raw(start(first), ...text(0, "x"), ...ended("end_turn", {}, last)));
      return events.flatMap((event) => {
        if (event.type !== "usage") return [];
        const { inputTokens, cachedInputTokens, outputTokens } = event.usage;
        return [[inputTokens, cachedInputTokens, outputTokens, ...Object.values(event.rejected ?? {}).slice(0, -1)]];
      });
    };
    expect(usage({ input_tokens: 25, output_tokens: 1 }, { output_tokens: 9 })).toEqual([
      [25, 0, 1],
      [25, 0, 9],
    ]);
    expect(usage({ input_tokens: 0, output_tokens: 0 }, { input_tokens: 30, output_tokens: 9 })).toEqual([[30, 0, 9]]);
    expect(usage({ input_tokens: 25, cache_read_input_tokens: 5 }, { input_tokens: 7, output_tokens: 0 })).toEqual([
      [25, 5, 0],
      [7, 5, 0],
    ]);
    expect(usage({ input_tokens: 25 }, { output_tokens: 9 })).toEqual([
      [25, 0, 0],
      [25, 0, 9],
    ]);
    // The engines' own proxies, and our service, report an estimate first. An input that was never reported is missing.
    expect(usage({ input_tokens: 0, output_tokens: 0 }, { output_tokens: 9 })).toEqual([[0, 0, 9, "missing"]]);
    expect(usage({ input_tokens: 25, output_tokens: 1 }, {})).toEqual([[25, 0, 1]]);
    expect(usage({ input_tokens: -1, output_tokens: "x" }, { output_tokens: 1e300 })).toEqual([
      [0, 0, 0, "malformed", "malformed"],
      [0, 0, 0, "malformed", "malformed"],
    ]);
  });
});

describe("a failure that tells nothing of the engine", () => {
  const began = [start(), block(0, { type: "text", text: "" }), textDelta(0, "a")];
  const error = (type: string): Event => ({ type: "error", error: { type, message: "secret-host:8000 boom" } });
  const failures: Record<string, [stream: string, code: string]> = {
    "an end without a reason": [raw(...began, stop(0), ...ended(null)), "upstream_unavailable"],
    "an end with an empty reason": [raw(...began, stop(0), ...ended("")), "upstream_unavailable"],
    "[DONE] in the middle of a call": [`${raw(start(), use(0, "a", "f"))}data: [DONE]\n\n`, "upstream_unavailable"],
    "an end that broke off": [raw(...began, stop(0), ...ended("network_error")), "upstream_unavailable"],
    "an end with an unknown reason and no message_stop": [
      raw(...began, stop(0), ...ended("something_new").slice(0, 1)),
      "upstream_unavailable",
    ],
    "a cut in the middle of a block": [raw(...began), "upstream_unavailable"],
    nothing: ["", "upstream_unavailable"],
    "[DONE] and nothing else": ["data: [DONE]\n\n", "upstream_unavailable"],
    "an event that is no JSON": [`${raw(...began)}data: {oops\n\n`, "upstream_unavailable"],
    "an event that is no object": ["data: 3\n\n", "upstream_unavailable"],
    "a call without a name": [called(use(0, "a", "")), "upstream_unavailable"],
    "an error of overload": [raw(...began, error("overloaded_error")), "overloaded"],
    "an error of rate": [raw(error("rate_limit_error")), "capacity_exceeded"],
    "an error about the request": [raw(start(), error("invalid_request_error")), "invalid_value"],
    "an error of llama.cpp, whose type is no event's": [
      `${raw(start())}event: error\ndata: {"code":500,"message":"Context size has been exceeded.","type":"server_error"}\n\n`,
      "capacity_exceeded",
    ],
    "an error of an unknown kind": [raw(start(), error("x")), "upstream_unavailable"],
    "an error in the words of others": [`data: {"error":"boom"}\n\n`, "upstream_unavailable"],
    "an error about the operator's key": [raw(error("authentication_error")), "upstream_unavailable"],
    "an input that is too long": [
      raw({
        type: "error",
        error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" },
      }),
      "context_length_exceeded",
    ],
  };
  for (const [what, [stream, code]] of Object.entries(failures))
    test(what, () => {
      const last = eventsOf(stream).at(-1);
      if (last?.type !== "response-failed") throw new Error(`expected a failure, got ${last?.type}`);
      expect(last.fault.code).toBe(code as never);
      expect(last.fault.message).not.toMatch(/secret|boom|8000/);
    });
});

describe("a whole reply", () => {
  const reply = (value: object) =>
    anthropicMessagesUpstream.response.decode(
      { type: "message", stop_reason: "end_turn", usage: { input_tokens: 5, output_tokens: 2 }, ...value },
      identity,
    );
  const partsOf = (value: object) => folded(reply(value));

  test("holds its blocks, those that nobody knows left out", () => {
    const answer = partsOf({
      content: [
        { type: "thinking", thinking: "hm", signature: "s" },
        { type: "server_tool_use", id: "x" },
        { type: "text", text: "" },
        { type: "text", text: "hello", citations: null },
        { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
        null,
      ],
      stop_reason: "tool_use",
    });
    expect(answer.parts).toEqual([
      { head: { kind: "reasoning" }, text: "hm", signature: "s" },
      { head: { kind: "text" }, text: "hello" },
      { head: { kind: "tool-call", callId: "a", toolName: "f" }, text: '{"x":1}' },
    ]);
    expect(answer).toMatchObject({ reason: "tool_calls", usage: { inputTokens: 5, outputTokens: 2 } });
  });

  test("that is none is a failure", () => {
    for (const value of [
      {},
      { content: null },
      { type: "error", error: { type: "api_error", message: "boom" } },
      { error: { message: "boom" } },
    ]) {
      const events = reply(value);
      expect(grammarProblem(events)).toBeNull();
      expect(events.at(-1)?.type).toBe("response-failed");
    }
    for (const value of [null, [], "x", 3]) {
      const [only] = anthropicMessagesUpstream.response.decode(value, identity);
      expect(only?.type === "response-failed" && only.fault instanceof Fault).toBe(true);
    }
  });
});
