/** Answers as Messages clients read them: the stream frame by frame, the whole message, and its end. */
import { describe, expect, test } from "bun:test";
import { Compile } from "typebox/compile";
import type { InferenceEvent } from "../../../../src/core/inference/event.ts";
import { Fault } from "../../../../src/core/inference/fault.ts";
import type { Native } from "../../../../src/core/inference/request.ts";
import type { Usage } from "../../../../src/core/inference/usage.ts";
import { anthropicMessagesCaller } from "../../../../src/core/protocol/anthropic-messages/codec.ts";
import {
  Message,
  MessagesError,
  type MessagesRequest,
} from "../../../../src/core/protocol/anthropic-messages/contract.ts";
import { unsigned } from "../../../../src/core/protocol/anthropic-messages/signature.ts";
import { openaiChatUpstream } from "../../../../src/core/protocol/openai-chat/codec.ts";
import { SseDecoder } from "../../../../src/core/sse/decode.ts";
import { begin, call, failed, finish, over, piece, text, writtenBy } from "../events.ts";
import { folded, streamProblem } from "../reading.ts";

const identity = { responseId: `msg_${"0".repeat(32)}`, createdAtSeconds: 1, model: "acme/writer-1" };
const context = { requestId: `req_${"0".repeat(32)}`, identity, inputTokensEstimate: 17 };
const caller = anthropicMessagesCaller();
const request = { model: "acme/writer-1", max_tokens: 9, messages: [], stop_sequences: ["END"] } as MessagesRequest;
const usage: Usage = {
  inputTokens: 30,
  cachedInputTokens: 12,
  cacheWriteTokens: 4,
  outputTokens: 9,
  reasoningTokens: 2,
  source: "reported",
};

const start: InferenceEvent = { type: "response-start", ...identity };
const used: InferenceEvent = { type: "usage", usage };
const isMessage = Compile(Message);
const isError = Compile(MessagesError);

/** Frames as a client reads them, each checked against the contract and all of them against the grammar. */
function frames(...events: InferenceEvent[]) {
  const encoder = caller.stream.encoder(request, context);
  const out = writtenBy(encoder, events);
  expect(streamProblem("messages", out)).toBeNull();
  return out.map((frame) => JSON.parse(frame.data) as Record<string, never>);
}
const brief = (events: Record<string, unknown>[]) =>
  events.map(({ type, index, delta, content_block: block }) => {
    const inner = (delta ?? block ?? {}) as Record<string, unknown>;
    return [type, index, inner.text ?? inner.partial_json ?? inner.thinking ?? inner.signature ?? inner.name]
      .filter((value) => value !== undefined)
      .join(" ");
  });

describe("a stream", () => {
  test("is these frames, and no others", () => {
    const all = frames(start, begin(0, text), piece(0, "Hel"), piece(0, "lo"), finish(0), used, over("stop"));
    expect(all).toEqual([
      {
        type: "message_start",
        message: {
          id: identity.responseId,
          type: "message",
          role: "assistant",
          model: "acme/writer-1",
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 17, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
        },
      },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hel" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "lo" } },
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: {
          input_tokens: 30,
          cache_creation_input_tokens: 4,
          cache_read_input_tokens: 12,
          output_tokens: 9,
          output_tokens_details: { thinking_tokens: 2 },
        },
      },
      { type: "message_stop" },
    ] as never);
  });

  test("starts with what the engine counted, where it has counted by then", () => {
    const [first] = frames(start, used, begin(0, text), piece(0, "x"), finish(0), over("stop"));
    expect((first as unknown as { message: { usage: unknown } }).message.usage).toMatchObject({
      input_tokens: 30,
      cache_read_input_tokens: 12,
    });
  });

  test("writes deltas as they come, not later", () => {
    const encoder = caller.stream.encoder(request, context);
    const steps = [
      start,
      begin(0, text),
      piece(0, "a"),
      piece(0, "b"),
      begin(1, call("f", "c")),
      finish(0),
      piece(1, '{"x":'),
      piece(1, "1}"),
      finish(1),
    ];
    expect(steps.map((event) => encoder.push(event).map((frame) => frame.event))).toEqual([
      [],
      [],
      ["message_start", "content_block_start", "content_block_delta"],
      ["content_block_delta"],
      [],
      ["content_block_stop", "content_block_start"],
      ["content_block_delta"],
      ["content_block_delta", "content_block_stop"],
      [],
    ]);
  });

  test("ends a call with its arguments, though its engine ends none before the answer does", () => {
    const encoder = caller.stream.encoder(request, context);
    const chat = openaiChatUpstream.stream.decoder(identity);
    const fragment = (value: object) => ({
      data: JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [value] } }] }),
    });
    const seen = [
      fragment({ index: 0, id: "a", function: { name: "f", arguments: '{"x":"}"}' } }),
      fragment({ index: 1, id: "b", function: { name: "f", arguments: "{" } }),
    ].map((message) =>
      chat
        .push(message)
        .flatMap((event) => encoder.push(event))
        .map((frame) => frame.event),
    );
    expect(seen).toEqual([
      ["message_start", "content_block_start", "content_block_delta", "content_block_stop"],
      ["content_block_start", "content_block_delta"],
    ]);
  });

  test("signs thinking last in its block: with the engine's signature, or with what says that there is none", () => {
    const signed = (more: object) =>
      brief(frames(start, begin(0, { kind: "reasoning" }), piece(0, "hm"), finish(0, more), over("stop"))).slice(3, 5);
    expect(signed({ signature: "abc=" })).toEqual(["content_block_delta 0 abc=", "content_block_stop 0"]);
    expect(signed({})).toEqual([`content_block_delta 0 ${unsigned}`, "content_block_stop 0"]);
    expect(signed({ signature: "" })[0]).toBe("content_block_stop 0");
  });

  test("beats with message_start once, then pings, and not after its end", () => {
    const encoder = caller.stream.encoder(request, context);
    const beat = () => new SseDecoder().push(new TextEncoder().encode(encoder.heartbeat())).map((frame) => frame.event);
    expect(beat()).toEqual(["message_start", "ping"]);
    expect(beat()).toEqual(["ping"]);
    expect(
      [start, begin(0, text), piece(0, "x")].flatMap((event) => encoder.push(event)).map((frame) => frame.event),
    ).toEqual(["content_block_start", "content_block_delta"]);
    expect(beat()).toEqual(["ping"]);
    [finish(0), over("stop")].flatMap((event) => encoder.push(event));
    expect(beat()).toEqual([]);
  });

  test("that fails ends with its error and nothing more, blocks left open", () => {
    const fault = new Fault("overloaded", "The model is overloaded. Please try again shortly.", {
      cause: new Error("secret"),
    });
    const events = frames(start, begin(0, text), piece(0, "a"), failed(fault), finish(0), over("stop"));
    expect(events.slice(3)).toEqual([
      {
        type: "error",
        error: { type: "overloaded_error", message: fault.message, details: { error_code: "overloaded" } },
        request_id: context.requestId,
      },
    ] as never);
    expect(frames(failed(fault)).map(({ type }) => type)).toEqual(["error"] as never);
  });

  test("that breaks off without its end is a failure too", () => {
    expect(frames(start, begin(0, text), piece(0, "a")).at(-1)).toMatchObject({
      type: "error",
      error: { type: "api_error" },
    });
  });
});

const whole = (...events: InferenceEvent[]) => {
  const message = caller.response.encode(folded([start, ...events]), request);
  expect(isMessage.Check(message)).toBe(true);
  return message;
};

describe("a message", () => {
  test("is all of it at once", () => {
    const citation: Native = { protocol: "anthropic-messages", wire: { type: "char_location", cited_text: "a" } };
    expect(
      whole(
        begin(0, { kind: "reasoning" }),
        piece(0, "hm"),
        finish(0, { signature: "s" }),
        begin(1, { kind: "reasoning", encrypted: "e" }),
        finish(1),
        begin(2, text),
        piece(2, "Hi"),
        finish(2, { citations: [citation] }),
        begin(3, text),
        finish(3),
        begin(4, call("f", "a")),
        piece(4, '{"x":[1]}'),
        finish(4),
        used,
        over("tool_calls"),
      ),
    ).toEqual({
      id: identity.responseId,
      type: "message",
      role: "assistant",
      model: "acme/writer-1",
      content: [
        { type: "thinking", thinking: "hm", signature: "s" },
        { type: "redacted_thinking", data: "e" },
        { type: "text", text: "Hi", citations: [{ type: "char_location", cited_text: "a" }] },
        { type: "tool_use", id: "a", name: "f", input: { x: [1] } },
      ],
      stop_reason: "tool_use",
      stop_sequence: null,
      usage: {
        input_tokens: 30,
        cache_creation_input_tokens: 4,
        cache_read_input_tokens: 12,
        output_tokens: 9,
        output_tokens_details: { thinking_tokens: 2 },
      },
    });
  });

  test("without citations has no such key: some clients refuse a null", () => {
    expect(Object.keys(whole(begin(0, text), piece(0, "x"), finish(0), over("stop")).content[0]!)).toEqual([
      "type",
      "text",
    ]);
  });
});

test("the digits of a number in a call's arguments are as the model wrote them", () => {
  const written = '{"id":1790123456789012345,"at":0.12345678901234567890,"text":"1790123456789012345"}';
  const { content } = whole(begin(0, call("f", "a")), piece(0, written), finish(0), over("tool_calls"));
  expect(JSON.stringify(content[0])).toContain(`"input":${written}`);
});

describe("the arguments of a call", () => {
  const inputs: Record<string, [written: string[], input: object, fragments: string]> = {
    "an object": [['{"a":', '"}{"}'], { a: "}{" }, '{"a":"}{"}'],
    nothing: [[], {}, ""],
    "blanks around an object": [[" \n", '{"a":1}', "\n "], { a: 1 }, '{"a":1}'],
    "a brace too many": [['{"a":1}', "}"], { a: 1 }, '{"a":1}'],
    "quotes that are escaped": [['{"a":"\\"}\\\\', '"}'], { a: '"}\\' }, '{"a":"\\"}\\\\"}'],
    null: [["null"], {}, ""],
    "a list": [["[1]"], {}, ""],
    prose: [["look up {x}"], {}, ""],
    "an object that is cut off": [['{"a":"x', "y"], {}, '{"a":"xy'],
  };
  for (const [what, [written, input, fragments]] of Object.entries(inputs))
    test(`written as ${what}`, () => {
      const events = [begin(0, call("f", "a")), ...written.map((part) => piece(0, part)), finish(0), over("length")];
      const message = whole(...events);
      expect(message.content).toEqual([
        { type: "tool_use", id: "a", name: "f", input: input as Record<string, unknown> },
      ]);
      expect(message.stop_reason).toBe("max_tokens");
      const streamed = frames(start, ...events).flatMap(
        ({ delta }: { delta?: { partial_json?: string } }) => delta?.partial_json ?? [],
      );
      expect(streamed.join("")).toBe(fragments);
    });
});

describe("why it ended", () => {
  const refusal: InferenceEvent[] = [begin(0, { kind: "refusal" }), piece(0, "No."), finish(0)];
  const said: InferenceEvent[] = [begin(0, text), piece(0, "x"), finish(0)];
  const called: InferenceEvent[] = [begin(0, call("f", "a")), finish(0)];
  const ends: Record<string, [events: InferenceEvent[], reason: string, sequence: string | null]> = {
    "of itself": [[...said, over("stop")], "end_turn", null],
    "at a sequence that was asked for": [[...said, over("stop", "END")], "stop_sequence", "END"],
    "at a sequence of the engine's own": [[...said, over("stop", "<|im_end|>")], "end_turn", null],
    "at the cap": [[...said, over("length")], "max_tokens", null],
    "at the cap, in a call": [[...called, over("length")], "max_tokens", null],
    "for a call": [[...called, over("tool_calls")], "tool_use", null],
    "for a call that the engine calls a stop": [[...called, over("stop")], "tool_use", null],
    "for calls, and there are none": [[...said, over("tool_calls")], "end_turn", null],
    "by a filter": [[...said, over("content_filter")], "refusal", null],
    "in a refusal, which is told as text": [[...refusal, over("stop")], "refusal", null],
  };
  for (const [why, [events, reason, sequence]] of Object.entries(ends))
    test(why, () => {
      const message = whole(...events);
      expect([message.stop_reason, message.stop_sequence]).toEqual([reason, sequence] as never);
      const delta = frames(start, ...events).find(({ type }) => type === ("message_delta" as never));
      expect(delta).toMatchObject({ delta: { stop_reason: reason, stop_sequence: sequence } } as never);
    });

  test("a refusal is a block of text", () => {
    expect(whole(...refusal, over("stop")).content).toEqual([{ type: "text", text: "No." }]);
  });
});

describe("an error", () => {
  test("has the shape that its clients read, with what it carries beside its code", () => {
    const body = { window: "session", reset_at: "2026-11-21T03:00:00.000Z" };
    const error = caller.fault.encode(
      new Fault("usage_limit_reached", "The session window is used up.", { body }),
      context.requestId,
    );
    expect(isError.Check(error)).toBe(true);
    expect(error).toEqual({
      type: "error",
      error: {
        type: "rate_limit_error",
        message: "The session window is used up.",
        details: { error_code: "usage_limit_reached", ...body },
      },
      request_id: context.requestId,
    });
  });

  test("about a field begins with its path", () => {
    const told = (message: string) =>
      (caller.fault.encode(new Fault("model_not_found", message, { param: "model" }), "r") as MessagesError).error;
    expect(told("The model 'x' does not exist.")).toMatchObject({
      type: "not_found_error",
      message: "model: The model 'x' does not exist.",
    });
    expect(told("'model' must be a string.").message).toBe("model: must be a string.");
  });
});
