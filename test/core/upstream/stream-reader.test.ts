/**
 * Similar frames are read by comparing them with an earlier one (src/core/upstream/stream-reader.ts): whatever an
 * engine sends, and however it is cut, the result is the same as when each frame is decoded.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import type { EngineDecoder } from "../../../src/core/protocol/codec.ts";
import { SseDecoder } from "../../../src/core/sse/decode.ts";
import { type UpstreamProtocol, upstreamCodecs, upstreamProtocols } from "../../../src/core/upstream/codecs.ts";
import { StreamReader } from "../../../src/core/upstream/stream-reader.ts";
import { cutAt } from "../../harness/cut.ts";
import { cases, times } from "../../harness/depth.ts";

const identity = { responseId: "resp_1", createdAtSeconds: 1, model: "acme/m" };
const decoderOf = (protocol: UpstreamProtocol) => upstreamCodecs[protocol].stream.decoder(identity);
const utf8 = new TextEncoder();

/** A frame of the protocol with the delta `quoted`, which is JSON text; `count` is the frame's number in the stream. */
type Frame = (quoted: string, count: number) => string;

const chunk = (delta: string, more = '"logprobs":null,"finish_reason":null') =>
  `data: {"id":"c","choices":[{"index":0,"delta":${delta},${more}}]}\n\n`;
const block = (type: string, name: string, quoted: string, index = 0) =>
  `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${name}":${quoted}}}\n\n`;
const item = (type: string, count: number | string, quoted: string, more = "") =>
  `event: ${type}\ndata: {"type":"${type}","sequence_number":${count},"item_id":"i","output_index":0,"content_index":0,"delta":${quoted}${more}}\n\n`;
const text = "response.output_text.delta";

/** The variants of each protocol's frames; the first is the usual one. */
const frames: Record<UpstreamProtocol, readonly Frame[]> = {
  "openai-chat": [
    (quoted) => chunk(`{"content":${quoted}}`),
    (quoted) => chunk(`{"reasoning_content":${quoted}}`),
    (quoted) => chunk(`{"reasoning":${quoted},"content":null}`),
    (quoted) => chunk(`{"refusal":${quoted}}`),
    (quoted) => chunk(`{"content":${quoted}}`, '"finish_reason":"length"'),
    (quoted) => chunk(`{"content":${quoted}}`, `"stop_reason":${quoted},"finish_reason":null`),
    (quoted) => chunk(`{"content":"x"}`, `"stop_reason":${quoted},"finish_reason":null`),
    (quoted) => chunk(`{"content":"same","content":${quoted}}`),
    (quoted) => chunk(`{"content":[{"type":"text","text":${quoted}}]}`),
    (quoted) => chunk(`{"content":[{"type":"text","text":"a"},{"type":"text","text":${quoted}}]}`),
    (quoted) => chunk(`{"content":[{"type":"thinking","thinking":[{"text":"a"},{"text":${quoted}}]}]}`),
    (quoted) => chunk(`{"content":${quoted}}`, `"logprobs":{"content":[{"token":${quoted},"logprob":-1}]}`),
    (quoted) => chunk(`{"content":"","x":${quoted}}`, '"logprobs":{"content":[{"token":"y","logprob":-1}]}'),
    (quoted) => chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":${quoted}}}]}`),
    (quoted) => chunk(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":${quoted}}}]}`),
    (quoted) => chunk(`{"tool_calls":[{"index":0,"function":{"arguments":${quoted}}}]}`),
    () => 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n',
    (quoted) => `data: {"choices":[{"delta":{"content":${quoted}}}],"usage":{"completion_tokens":2}}\n\n`,
    (quoted) => `data: {"error":{"message":${quoted}}}\n\n`,
    () => chunk("{}"),
    () => "data: [DONE]\n\n",
  ],
  "anthropic-messages": [
    (quoted) => block("text_delta", "text", quoted),
    (quoted) => block("thinking_delta", "thinking", quoted, 1),
    (quoted) => block("input_json_delta", "partial_json", quoted, 2),
    (quoted) => block("signature_delta", "signature", quoted, 1),
    (quoted) => block("text_delta", "thinking", quoted),
    () => 'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
    () => 'data: {"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":""}}\n\n',
    () => 'data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f"}}\n\n',
    () => 'data: {"type":"content_block_start","index":0,"content_block":{"type":"server_thing"}}\n\n',
    () => 'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    () => 'data: {"type":"message_start","message":{"usage":{"input_tokens":3}}}\n\n',
    () => 'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}\n\n',
    (quoted) => `data: {"type":"error","error":{"type":"overloaded_error","message":${quoted}}}\n\n`,
    () => 'data: {"type":"message_stop"}\n\n',
  ],
  "openai-responses": [
    (quoted, count) => item(text, count, quoted, ',"logprobs":[]'),
    (quoted, count) => item("response.reasoning_text.delta", count, quoted),
    (quoted, count) => item("response.refusal.delta", count, quoted),
    (quoted, count) => item("response.function_call_arguments.delta", count, quoted),
    (quoted, count) => item(text, count, quoted, `,"obfuscation":"${"x".repeat(count % 7)}"`),
    (quoted, count) => item(text, count, quoted, ',"logprobs":[{"token":"t","logprob":-1}]'),
    (quoted, count) => item(text, `0${count}`, quoted, ',"logprobs":[]'),
    (quoted, count) => item(text, `${count}.5`, quoted, ',"logprobs":[]'),
    (quoted, count) => item(text, `-${count}`, quoted, ',"logprobs":[]'),
    (quoted, count) => item(text, count, quoted, `,"sequence_number":${count}`),
    (quoted, count) =>
      `data: {"type":"response.reasoning_summary_text.delta","sequence_number":${count},"output_index":1,"summary_index":${count % 3},"delta":${quoted}}\n\n`,
    () => 'data: {"type":"response.created","response":{}}\n\n',
    () =>
      'data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i","content":[]}}\n\n',
    () => 'data: {"type":"response.output_item.added","output_index":1,"item":{"type":"reasoning","id":"r"}}\n\n',
    () =>
      'data: {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}\n\n',
    (quoted) => `data: {"type":"response.output_text.done","output_index":0,"content_index":0,"text":${quoted}}\n\n`,
    () => 'data: {"type":"response.content_part.done","output_index":0,"content_index":0}\n\n',
    (quoted) => `data: {"type":"response.failed","response":{"error":{"message":${quoted}}}}\n\n`,
    () => 'data: {"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":4}}}\n\n',
  ],
};

/** Frames that any engine may send in between, or in place of a text. */
const others: readonly Frame[] = [
  () => ": ping\n\n",
  () => "\n",
  () => "\ufeff",
  () => "event: odd\n",
  (quoted) => `data: ${quoted}\n\n`,
  (quoted) => `data: {"choices":[{"delta":{"content":${quoted}}}]}`,
];

const word = fc.oneof(
  fc.constantFrom(
    " word",
    "a",
    "content",
    "text_delta",
    "\n",
    '"',
    "\\",
    "é",
    "🌊",
    "\u2028",
    '"}',
    "}\n\ndata: {",
    "0",
    "{",
    "}",
  ),
  fc.string({ unit: "binary", maxLength: 6 }),
);
const escaped = (delta: string) =>
  `"${[...delta].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"`;
const quoted = fc.oneof(
  { weight: 8, arbitrary: word.map((delta) => JSON.stringify(delta)) },
  { weight: 1, arbitrary: word.map(escaped) },
  // Odd values: an empty string, JSON that is no string, and text that is no JSON at all.
  {
    weight: 1,
    arbitrary: fc.constantFrom('"a"b"', '"\\"', '"\\x"', '"a\tb"', "null", "7", '""', '"a\nb"', '{"a":"b"}'),
  },
);

interface Sent {
  bytes: Uint8Array;
  /** The positions at which frames begin. */
  frames: number[];
}

/** Sequences of frames of one variant, as engines send them, with other frames in between. */
function sent(protocol: UpstreamProtocol): fc.Arbitrary<Sent> {
  const forms = frames[protocol];
  const form = fc.oneof(
    { weight: 4, arbitrary: fc.constant(forms[0]!) },
    { weight: 4, arbitrary: fc.constantFrom(...forms) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  );
  const run = fc.record({
    form,
    texts: fc.array(quoted, { minLength: 1, maxLength: 8 }),
    isCrLf: fc.integer({ max: 9, min: 0 }),
  });
  return fc.array(run, { minLength: 1, maxLength: 8 }).map((runs) => {
    let count = 0;
    const pieces = runs.flatMap(({ form: made, texts, isCrLf }) =>
      texts.map((each) => {
        const frame = made(each, count++);
        const bytes = utf8.encode(isCrLf === 0 ? frame.replaceAll("\n", "\r\n") : frame);
        // Makes the bytes of some frames invalid UTF-8.
        return each.includes("0") && count % 5 === 0 ? bytes.map((byte) => (byte === 48 ? 0xc3 : byte)) : bytes;
      }),
    );
    const at = [0];
    for (const piece of pieces) at.push(at.at(-1)! + piece.length);
    return { bytes: Uint8Array.from(pieces.flatMap((piece) => [...piece])), frames: at.slice(1, -1) };
  });
}

/** Cuts the bytes at the ends of some frames, and at any other positions. */
function cut({ bytes, frames: begins }: Sent, kept: readonly boolean[], places: readonly number[]): Uint8Array[] {
  const whole = begins.filter((_, at) => kept[at % kept.length]);
  return cutAt(bytes, [...whole, ...places]);
}

/** The events that are read from these pieces: a list for each piece, and one for the end. */
function told(
  pieces: readonly Uint8Array[],
  read: (piece: Uint8Array) => InferenceEvent[],
  end: () => InferenceEvent[],
) {
  const events = pieces.map(read);
  return [...events, end()];
}

function ordinarily(protocol: UpstreamProtocol, pieces: readonly Uint8Array[]): InferenceEvent[][] {
  const decoder = decoderOf(protocol);
  const lines = new SseDecoder();
  const read = (piece: Uint8Array) => lines.push(piece).flatMap((message) => decoder.push(message));
  // The last event may lack its blank line, so one is added.
  const last = () => lines.push(utf8.encode("\n\n")).filter(({ data }) => isJson(data));
  return told(pieces, read, () => [...last().flatMap((message) => decoder.push(message)), ...decoder.end()]);
}

function isJson(text: string): boolean {
  try {
    return JSON.parse(text) !== undefined;
  } catch {
    return text === "[DONE]";
  }
}

/** The events of a read that returned at once, as it must, because no event of these tests is large. */
function atOnce(read: ReturnType<StreamReader["push"]>): InferenceEvent[] {
  if (read instanceof Promise) throw new Error("a small event was read in steps");
  return read;
}

function byComparing(protocol: UpstreamProtocol, pieces: readonly Uint8Array[]): InferenceEvent[][] {
  const reader = new StreamReader(decoderOf(protocol));
  return told(
    pieces,
    (piece) => atOnce(reader.push([piece])),
    () => atOnce(reader.end()),
  );
}

test.each(["007", "1.5", "-1", "1e1", "", "12345678901234567"])(
  "a frame that counts itself as %p is read as any other",
  (number) => {
    const said = (count: number | string, delta: string) => item(text, count, JSON.stringify(delta), ',"logprobs":[]');
    const stream = [
      'data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i","content":[]}}\n\n',
      ...["a", "b", "c", "d"].map((delta, count) => said(count, delta)),
      said(number, "e"),
      said(6, "f"),
    ].map((frame) => utf8.encode(frame));
    expect(byComparing("openai-responses", stream)).toEqual(ordinarily("openai-responses", stream));
  },
);

const streams = times(500, 4_000);

describe.each(upstreamProtocols)("%s", (protocol) => {
  test("any stream, however it is cut, says the same as when each frame is read", () => {
    fc.assert(
      fc.property(
        sent(protocol),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }).map((kept) => [true, ...kept]),
        fc.array(fc.nat(), { maxLength: 3 }),
        (stream, kept, places) => {
          const pieces = cut(stream, kept, places);
          expect(byComparing(protocol, pieces)).toEqual(ordinarily(protocol, pieces));
        },
      ),
      cases(streams),
    );
  }, 60_000);

  test("of a long answer few frames are read one by one", () => {
    const decoder = decoderOf(protocol);
    let read = 0;
    const counted: EngineDecoder = {
      reads: (name) => decoder.reads(name),
      push(message) {
        read += 1;
        return decoder.push(message);
      },
      end: () => decoder.end(),
    };
    const reader = new StreamReader(counted);
    const words = Array.from({ length: 1_000 }, (_, at) => (at % 10 === 9 ? `line ${at}\n` : ` word${at % 7}`));
    const [usual] = frames[protocol];
    const events = words.flatMap((each, at) => atOnce(reader.push([utf8.encode(usual!(JSON.stringify(each), at))])));
    expect(events.flatMap((event) => (event.type === "part-delta" ? [event.delta] : []))).toEqual(words);
    expect(read).toBeLessThan(5);
  });
});

test("what an engine repeats of a request when it begins a response is not read", () => {
  const tools = JSON.stringify(Array.from({ length: 400 }, (_, at) => ({ name: `tool_${at}`, parameters: { at } })));
  const begun = (type: string) => `event: ${type}\ndata: {"type":"${type}","response":{"tools":${tools}}}\n\n`;
  const frame = item(text, 2, '"a"', ',"logprobs":[]');
  const added =
    'event: response.output_item.added\ndata: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i","content":[]}}\n\n';
  const stream = utf8.encode(begun("response.created") + begun("response.in_progress") + added + frame);
  // The events are large, but are still read at once, however they are cut.
  for (const piece_bytes of [stream.length, 16_384, 1_000, 7]) {
    const pieces = Array.from({ length: Math.ceil(stream.length / piece_bytes) }, (_, at) =>
      stream.slice(at * piece_bytes, (at + 1) * piece_bytes),
    );
    const told = byComparing("openai-responses", pieces).flat();
    expect(told.map(({ type }) => type)).toEqual(["response-start", "part-start", "part-delta", "response-failed"]);
  }
  const unnamed = begun("response.created").replace(/^event: .*\n/, "");
  expect(new StreamReader(decoderOf("openai-responses")).push([utf8.encode(unnamed)])).toBeInstanceOf(Promise);
});

test("the larger an event is, the more of it is read at once, but not much more than it", () => {
  const kib = 1024;
  const reader = new StreamReader(decoderOf("openai-chat"));
  const most: number[] = [];
  const push = (text: string) => {
    atOnce(reader.push([utf8.encode(text)]));
    most.push(reader.next_bytes);
  };
  push(": a comment\n\n");
  push(`data: ${"x".repeat(kib)}`);
  for (const more of [2, 4, 8, 40]) push("x".repeat(more * kib));
  expect(most.map((bytes) => Math.floor(bytes / kib))).toEqual([4, 4, 6, 14, 30, 64]);
});

test("a text that varies elsewhere in the frame is not taken for the delta", () => {
  const of = (content: string, other: string) => utf8.encode(chunk(`{"content":${content}}`, `"other":${other}`));
  // The engine writes the same text in another way, so a search for the text finds only the other field.
  const pieces = [of('"x"', '"y"'), of('"\\u007a"', '"z"'), of('"\\u007a"', '"w"'), of('"\\u007a"', '"v"')];
  const told = byComparing("openai-chat", pieces);
  expect(told).toEqual(ordinarily("openai-chat", pieces));
  expect(told.at(-2)).toEqual([{ type: "part-delta", index: 0, delta: "z" }]);
});

test("the second half of a frame is no frame", () => {
  const frame = (text: string) => utf8.encode(chunk(`{"content":"${text}"}`));
  const half = frame("a").length - 50;
  const pieces = [frame("x"), frame("a").slice(0, half), frame("a").slice(half), frame("a").slice(half)];
  expect(byComparing("openai-chat", pieces)).toEqual(ordinarily("openai-chat", pieces));
});

test("arguments that are complete end their call, and the same frame begins another", () => {
  const frame = (text: string) =>
    utf8.encode(chunk(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":${JSON.stringify(text)}}}]}`));
  const pieces = ["{", "}", "}", "{"].map(frame);
  expect(byComparing("openai-chat", pieces)).toEqual(ordinarily("openai-chat", pieces));
});

test("half a character in a frame that is alike waits for its other half", () => {
  const frame = (quoted: string) => utf8.encode(chunk(`{"content":${quoted}}`));
  const pieces = ['"a"', '"b"', '"c"', '"d\\ud83d"', '"\\ude00"', '"e"', '"\\ud83d"', '"f"'].map(frame);
  const told = byComparing("openai-chat", pieces);
  expect(told).toEqual(ordinarily("openai-chat", pieces));
  const deltas = told.flat().flatMap((event) => (event.type === "part-delta" ? [event.delta] : []));
  expect(deltas).toEqual(["a", "b", "c", "d", "😀", "e", "\ufffdf"]);
});

describe("the last event of a stream", () => {
  const stop = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}';
  const large = JSON.stringify({ choices: [{ delta: { content: "x".repeat(20_000) }, finish_reason: "stop" }] });
  const endOf = async (text: string) => {
    const reader = new StreamReader(decoderOf("openai-chat"));
    const events = await reader.push([utf8.encode(`${chunk('{"content":"a"}')}${text}`)]);
    return [...events, ...(await reader.end())].at(-1)?.type;
  };

  test.each([
    ["without a blank line", stop],
    ["with one line end", `${stop}\n`],
    ["joined to [DONE]", `${stop}\ndata: [DONE]\n\n`],
    ["joined to [DONE], without a blank line", `${stop}\ndata: [DONE]`],
    ["large, without a blank line", `data: ${large}`],
    ["large, joined to [DONE]", `data: ${large}\ndata: [DONE]\n\n`],
    ["behind which another is cut off", `${stop}\n\ndata: {"choices":[],"usa`],
  ])("%s counts", async (_, text) => expect(await endOf(text)).toBe("response-end"));

  test.each([
    ["cut off", stop.slice(0, -3)],
    ["large and cut off", `data: ${large.slice(0, -3)}`],
  ])("%s does not count", async (_, text) => expect(await endOf(text)).toBe("response-failed"));
});
