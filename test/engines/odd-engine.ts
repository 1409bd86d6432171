// Generates random unusual responses of engines: finish reasons, IDs, indexes, splits of characters and of lines, and
// missing ends. The meaning of each response is known, so it can be compared with what a client gets.

import type { Answer, EngineName } from "../core/protocol/pairs/wires.ts";

/** Draws a whole number below this one. */
export type Draw = (below: number) => number;

export interface Odd {
  bytes: Uint8Array[];
  /** How the response must end for the client. With `failed`, it must not count as a success. */
  end: "stop" | "length" | "content_filter" | "failed";
}

const words = {
  stop: ["stop", "eos", "end_turn", "COMPLETE", "EOS_TOKEN", "stop_sequence", "a word that nobody knows"],
  length: ["length", "max_tokens", "MAX_TOKENS", "maxTokens", "model_length", "model_context_window_exceeded"],
  content_filter: ["content_filter", "content-filter", "SAFETY", "sensitive", "refusal", "RECITATION"],
  failed: ["error", "abort", "network_error", "TIMEOUT", "Cancelled", "upstream_error_7", "unknown"],
};
const notYet = [null, "", "null", "None", " ", false];

export function oddStream(engine: EngineName, answer: Omit<Answer, "end">, draw: Draw): Odd {
  const end = oneOf(["stop", "stop", "stop", "length", "content_filter", "failed"] as const, draw);
  const isCut = draw(4) === 0;
  const word = oneOf(words[end], draw);
  const events = writers[engine](answer, end, word, draw);
  // An unknown finish reason ends the response only if the protocol's own end follows.
  const endAt = events.findIndex(({ isEnd }) => isEnd);
  const kept = isCut ? events.slice(0, draw(2) === 0 ? endAt : draw(endAt + 1)) : events;
  const text = lines(kept, draw);
  return { bytes: cut(text, draw), end: isCut ? "failed" : end };
}

interface Written {
  name?: string;
  data: object | "[DONE]";
  /** Whether this event completes the response. */
  isEnd?: true;
}

const writers: Record<
  EngineName,
  (answer: Omit<Answer, "end">, end: Odd["end"], word: string, draw: Draw) => Written[]
> = {
  chat({ reasoning, text, calls }, end, word, draw) {
    const filler = oneOf(notYet, draw);
    const chunk = (delta: object, finish_reason: unknown = filler): Written => ({
      data: { choices: [{ index: 0, delta, finish_reason }] },
    });
    const name = oneOf(["reasoning", "reasoning_content"], draw);
    const isKnown = !word.includes(" ");
    // Some engines send no finish reason at all.
    const isUnsaid = end === "stop" && calls.length === 0 && reasoning + text !== "" && draw(4) === 0;
    const isDone = isUnsaid || !isKnown;
    return [
      ...some(chunk({ role: "assistant", content: oneOf(["", null], draw) }), draw),
      ...pieces(reasoning, draw).map((piece) => chunk({ [name]: piece })),
      ...pieces(text, draw).map((piece) => chunk({ content: piece })),
      ...fragments(calls, draw).map((fragment) => chunk({ tool_calls: [fragment] })),
      ...(isUnsaid ? [] : [{ ...chunk({}, word), ...(isDone ? {} : { isEnd: true as const }) }]),
      ...some(chunk({ content: "" }, oneOf(["", null, isDone || end === "failed" ? "" : "stop"], draw)), draw),
      ...(!isDone && draw(3) === 0 ? [] : [{ data: "[DONE]" as const, ...(isDone ? { isEnd: true as const } : {}) }]),
    ];
  },
  messages({ reasoning, text, calls }, _, word, draw) {
    let index = 0;
    const event = (type: string, more: object): Written => ({ name: type, data: { type, ...more } });
    const block = (begun: object, deltas: object[]) => {
      const at = index++;
      return [
        event("content_block_start", { index: at, content_block: begun }),
        ...deltas.map((delta) => event("content_block_delta", { index: at, delta })),
        ...some(event("content_block_stop", { index: at }), draw),
      ];
    };
    const isKnown = !word.includes(" ");
    const last = { stop_reason: word, stop_sequence: null };
    return [
      ...some(event("message_start", { message: { usage: { input_tokens: 3, output_tokens: 0 } } }), draw),
      ...(reasoning === ""
        ? []
        : block(
            { type: "thinking", thinking: "" },
            pieces(reasoning, draw).map((thinking) => ({ type: "thinking_delta", thinking })),
          )),
      ...(text === ""
        ? []
        : block(
            { type: "text", text: "" },
            pieces(text, draw).map((piece) => ({ type: "text_delta", text: piece })),
          )),
      ...calls.flatMap(({ id, name, input }) =>
        block(
          { type: "tool_use", id: oneOf([id, "", "same"], draw), name, input: {} },
          pieces(JSON.stringify(input), draw).map((partial_json) => ({ type: "input_json_delta", partial_json })),
        ),
      ),
      { ...event("message_delta", { delta: last, usage: { output_tokens: 2 } }), ...(isKnown ? { isEnd: true } : {}) },
      ...some(event("message_delta", { delta: { stop_reason: "" }, usage: { output_tokens: 2 } }), draw),
      ...(isKnown && draw(3) === 0
        ? []
        : [oneOf([event("message_stop", {}), { data: "[DONE]" as const }], draw)].map(
            (one): Written => (isKnown ? one : { ...one, isEnd: true }),
          )),
    ];
  },
  responses({ reasoning, text, calls }, end, _, draw) {
    let output_index = 0;
    const event = (type: string, more: object): Written => ({ name: type, data: { type, ...more } });
    const item = (begun: { id: string; type: string }, deltas: [string, string][]) => {
      const place = { output_index: output_index++, item_id: begun.id };
      return [
        event("response.output_item.added", { ...place, item: begun }),
        ...deltas.map(([type, delta]) => event(`response.${type}.delta`, { ...place, content_index: 0, delta })),
      ];
    };
    const details = { length: "max_output_tokens", content_filter: "content-filter", failed: "network_error" };
    const reason = end === "stop" ? null : { reason: details[end] };
    const status = reason ? "incomplete" : "completed";
    return [
      ...some(event("response.created", { response: { id: "r", status: "in_progress", output: [] } }), draw),
      ...(reasoning === ""
        ? []
        : item(
            { id: "i1", type: "reasoning" },
            pieces(reasoning, draw).map((piece) => ["reasoning_text", piece]),
          )),
      ...(text === ""
        ? []
        : item(
            { id: "i2", type: "message" },
            pieces(text, draw).map((piece) => ["output_text", piece]),
          )),
      ...calls.flatMap(({ id, name, input }, at) =>
        item(
          { id: `c${at}`, type: "function_call", name, call_id: oneOf([id, "", "same"], draw) } as never,
          pieces(JSON.stringify(input), draw).map((piece) => ["function_call_arguments", piece]),
        ),
      ),
      {
        ...event(`response.${status}`, { response: { id: "r", status, incomplete_details: reason, output: [] } }),
        isEnd: true,
      },
      ...some({ data: "[DONE]" as const }, draw),
    ];
  },
};

/**
 * The fragments of tool calls. Those of one call are consecutive, with IDs and indexes in one of the ways of real
 * engines.
 */
function fragments(calls: Answer["calls"], draw: Draw): object[] {
  const way = draw(5);
  return calls.flatMap(({ id, name, input }, at) => {
    const written = pieces(JSON.stringify(input), draw);
    const head = draw(2) === 0 ? "" : (written.shift() ?? "");
    const nothing = oneOf([null, "", undefined], draw);
    const first = (index: unknown) => ({ index, id, type: "function", function: { name, arguments: head } });
    const next = (index: unknown, text: string, fragment = 0, more: object = {}) => ({
      index,
      id: way === 1 ? `${id}-${fragment}` : nothing,
      function: { name: nothing, arguments: text, ...more },
    });
    switch (way) {
      case 0:
        return [first(at), ...written.map((text) => next(at, text))];
      case 1: // a new ID in each fragment
        return [first(at), ...written.map((text, fragment) => next(at, text, fragment))];
      case 2: // an index that differs from that of the fragment with the name
        return [first(at + calls.length), ...written.map((text) => next(0, text))];
      case 3: // no index
        return [first(null), ...written.map((text) => next(null, text))];
      default: // the name in each fragment
        return [first(at), ...written.map((text) => next(at, text, 0, { name }))];
    }
  });
}

function oneOf<Value>(values: readonly Value[], draw: Draw): Value {
  return values[draw(values.length)]!;
}

function some(written: Written, draw: Draw): Written[] {
  return draw(2) === 0 ? [] : [written];
}

/** The text split anywhere, even within a character, whose halves JSON then escapes separately. */
function pieces(text: string, draw: Draw): string[] {
  const found: string[] = [];
  for (let at = 0; at < text.length; ) {
    const length = 1 + draw(6);
    found.push(text.slice(at, at + length));
    at += length;
  }
  return found;
}

/**
 * The events as an event stream with unusual line ends: one line end instead of two between events, none at the end, or
 * other line-end characters.
 */
function lines(events: readonly Written[], draw: Draw): string {
  const isNamed = draw(2) === 0;
  const eol = oneOf(["\n", "\r\n", "\r"], draw);
  const joined = draw(3) === 0;
  return events
    .map(({ name, data }, at) => {
      const line = `data: ${typeof data === "string" ? data : JSON.stringify(data)}${eol}`;
      const isLast = at === events.length - 1;
      const ended = (isLast || joined) && draw(2) === 0 ? "" : eol;
      return `${isNamed && name && !joined ? `event: ${name}${eol}` : ""}${line}${ended}`;
    })
    .join("");
}

/** The bytes in the chunks in which a client may read them: by frames, or split anywhere. */
function cut(text: string, draw: Draw): Uint8Array[] {
  if (draw(2) === 0) return text.split(/(?<=\n\n)/).map((frame) => new TextEncoder().encode(frame));
  const bytes = new TextEncoder().encode(text);
  const found: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = 1 + draw(oneOf([4, 200, 5000], draw));
    found.push(bytes.slice(at, at + length));
    at += length;
  }
  return found;
}
