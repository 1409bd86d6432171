/**
 * An engine's answer part by part, as raw wire and not by the codecs under test: in the order of its parts, or side by
 * side, as engines do with the fragments of parallel calls. And what a client sees of it.
 */
import { SseDecoder, type SseMessage } from "../../../../src/core/sse/decode.ts";
import { streamProblem } from "../anthropic-messages/stream-grammar.ts";
import { lifecycleProblem } from "../openai-responses/lifecycle.ts";
import { bytes } from "../reading.ts";
import {
  type Answer,
  type ClientName,
  chunk,
  type EngineName,
  halves,
  type Json,
  named,
  parsed,
  textOf,
} from "./wires.ts";

export type Part =
  | { kind: "reasoning" | "text"; text: string }
  | { kind: "call"; id: string; name: string; input: Record<string, unknown> };

const thought = (text: string): Part => ({ kind: "reasoning", text });
const said = (text: string): Part => ({ kind: "text", text });
const called = (at: number): Part => ({
  kind: "call",
  id: `call_${at}`,
  name: `f${at}`,
  input: { line: `line ${at}` },
});

export const answers: Record<string, Part[]> = {
  "two calls": [called(0), called(1)],
  "five calls": [0, 1, 2, 3, 4].map(called),
  "reasoning before each call": [thought("First this."), called(0), thought("Then that."), called(1)],
  "text between the calls": [said("I begin. "), called(0), said("I go on. "), called(1), said("That is all.")],
  "everything in turn": [thought("Hm, so."), said("I write."), called(0), called(1), thought("More."), called(2)],
};

/** The answer that a client must have seen, for these parts. */
export function answerOf(parts: Part[], end: Answer["end"]): Answer {
  const told = (kind: Part["kind"]) => parts.map((part) => (part.kind === kind && "text" in part ? part.text : ""));
  const calls = parts.flatMap((part) => (part.kind === "call" ? [part] : []));
  return {
    reasoning: told("reasoning").join(""),
    text: told("text").join(""),
    calls: calls.map(({ id, name, input }) => ({ id, name, input })),
    end,
  };
}

// ---- engines ---------------------------------------------------------------------------------------------------------

/** The frames of one part: its beginning, the pieces that may come between the pieces of other parts, and its end. */
interface Told {
  isCall: boolean;
  begin: string;
  pieces: string[];
  end: string;
}

export const orders: Record<string, (parts: Told[]) => string[]> = {
  "one after the other": (parts) => parts.flatMap(({ begin, pieces, end }) => [begin, ...pieces, end]),
  "side by side": (parts) => [
    ...parts.map(({ begin }) => begin),
    ...inTurn(parts.map(({ pieces }) => pieces)),
    ...parts.map(({ end }) => end).reverse(),
  ],
  "with all their ends last": (parts) => [
    ...parts.flatMap(({ begin, pieces }) => [begin, ...pieces]),
    ...parts.map(({ end }) => end),
  ],
  "with the last fragment of the first call late": (parts) => {
    const first = parts.find(({ isCall }) => isCall);
    const late = first ? [...first.pieces.slice(-1), first.end] : [];
    const early = parts.map((part) => (part === first ? { ...part, pieces: part.pieces.slice(0, -1), end: "" } : part));
    return [...orders["one after the other"]!(early), ...late];
  },
};

/** The first of each list, then the second of each, and so on. */
function inTurn<Item>(lists: Item[][]): Item[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}

/** The frames of a whole stream, in an order of its parts. */
export function framesOf(
  engine: EngineName,
  parts: Part[],
  order: string,
  end: Answer["end"] = "tool_calls",
): string[] {
  const { head, tell, tail } = tellers[engine];
  return [head, ...orders[order]!(parts.map(tell)), tail(parts, end)].filter((frame) => frame !== "");
}

interface Teller {
  head: string;
  tell(part: Part, at: number): Told;
  tail(parts: Part[], end: Answer["end"]): string;
}

const wholeOf = (part: Part) => (part.kind === "call" ? JSON.stringify(part.input) : part.text);

const chatTeller: Teller = {
  head: chunk({ role: "assistant", content: "" }),
  tell(part, at) {
    if (part.kind !== "call") {
      const key = part.kind === "text" ? "content" : "reasoning_content";
      const begin = halves(part.text).map((half) => chunk({ [key]: half }));
      return { isCall: false, begin: begin.join(""), pieces: [], end: "" };
    }
    const fragment = (more: object) => chunk({ tool_calls: [{ index: at, ...more }] });
    return {
      isCall: true,
      begin: fragment({ id: part.id, type: "function", function: { name: part.name, arguments: "" } }),
      pieces: halves(wholeOf(part)).map((half) => fragment({ function: { arguments: half } })),
      end: "",
    };
  },
  tail: (_, end) => `${chunk({}, end)}data: [DONE]\n\n`,
};

const messagesTeller: Teller = {
  head: told("message_start", { message: { id: "m", role: "assistant", content: [], usage: { input_tokens: 3 } } }),
  tell(part, index) {
    const [block, delta] = {
      reasoning: [{ type: "thinking", thinking: "", signature: "" }, (thinking: string) => ({ thinking })] as const,
      text: [{ type: "text", text: "" }, (text: string) => ({ text })] as const,
      call: [{ ...part, type: "tool_use", input: {} }, (partial_json: string) => ({ partial_json })] as const,
    }[part.kind];
    const type = { reasoning: "thinking_delta", text: "text_delta", call: "input_json_delta" }[part.kind];
    const pieces = halves(wholeOf(part)).map((half) =>
      told("content_block_delta", { index, delta: { type, ...delta(half) } }),
    );
    const begin = told("content_block_start", { index, content_block: block });
    return begun(part, begin, pieces, told("content_block_stop", { index }));
  },
  tail: (_, end) =>
    told("message_delta", {
      delta: { stop_reason: end === "length" ? "max_tokens" : "tool_use" },
      usage: { output_tokens: 2 },
    }) + told("message_stop", {}),
};

const responsesTeller: Teller = {
  head: told("response.created", { response: { id: "r", status: "in_progress", output: [] } }),
  tell(part, output_index) {
    const item = itemOf(part, output_index);
    const type = {
      reasoning: "response.reasoning_text.delta",
      text: "response.output_text.delta",
      call: "response.function_call_arguments.delta",
    }[part.kind];
    const place = { output_index, item_id: item.id, ...(part.kind === "call" ? {} : { content_index: 0 }) };
    const pieces = halves(wholeOf(part)).map((delta) => told(type, { ...place, delta }));
    const empty = { ...item, ...(part.kind === "call" ? { arguments: "" } : { content: [] }) };
    const begin = told("response.output_item.added", { output_index, item: empty });
    return begun(part, begin, pieces, told("response.output_item.done", { output_index, item }));
  },
  tail(parts, end) {
    const cut = end === "length";
    const status = cut ? "incomplete" : "completed";
    const incomplete_details = cut ? { reason: "max_output_tokens" } : null;
    return told(`response.${status}`, { response: { id: "r", status, incomplete_details, output: parts.map(itemOf) } });
  },
};

const tellers: Record<EngineName, Teller> = { chat: chatTeller, messages: messagesTeller, responses: responsesTeller };

function told(type: string, keys: object): string {
  return named({ type, ...keys });
}

/** Only calls are sent in pieces: no engine writes two texts at once. */
function begun(part: Part, begin: string, pieces: string[], end: string): Told {
  if (part.kind === "call") return { isCall: true, begin, pieces, end };
  return { isCall: false, begin: begin + pieces.join(""), pieces: [], end };
}

function itemOf(part: Part, at: number): { id: string; [key: string]: unknown } {
  if (part.kind === "call") {
    const { id: call_id, name } = part;
    return { id: `fc_${at}`, type: "function_call", call_id, name, arguments: wholeOf(part) };
  }
  if (part.kind === "reasoning")
    return { id: `rs_${at}`, type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: part.text }] };
  return { id: `msg_${at}`, type: "message", role: "assistant", content: [{ type: "output_text", text: part.text }] };
}

// ---- clients ---------------------------------------------------------------------------------------------------------

export function messagesOf(text: string): SseMessage[] {
  return new SseDecoder().push(bytes(text));
}

/**
 * What is wrong with the order in which a client gets the parts: they must come one at a time. Null if nothing is
 * wrong.
 */
export const orderProblem: Record<ClientName, (frames: readonly SseMessage[]) => string | null> = {
  chat: callsProblem,
  messages: streamProblem,
  responses: lifecycleProblem,
};

function callsProblem(frames: readonly SseMessage[]): string | null {
  const indexes = eventsIn(frames).flatMap(({ choices }) =>
    ((choices?.[0]?.delta?.tool_calls ?? []) as unknown as { index: number }[]).map(({ index }) => index),
  );
  const back = indexes.findIndex((index, at) => index < (indexes[at - 1] ?? 0));
  return back === -1 ? null : `a fragment of call ${indexes[back]} after one of call ${indexes[back - 1]}`;
}

/**
 * The kinds of the parts that a client got as whole parts, in their order; null for chat, whose frames do not delimit
 * parts.
 */
export const kindsTold: Record<ClientName, (frames: readonly SseMessage[]) => Part["kind"][] | null> = {
  chat: () => null,
  messages: (frames) =>
    eventsIn(frames).flatMap(({ type, content_block }) =>
      textOf(type) === "content_block_start" ? [kindOf[textOf(content_block?.type)]!] : [],
    ),
  responses: (frames) =>
    eventsIn(frames).flatMap(({ type, item }) =>
      textOf(type) === "response.output_item.done" ? [kindOf[textOf(item?.type)]!] : [],
    ),
};

const kindOf: Record<string, Part["kind"]> = {
  ...{ thinking: "reasoning", text: "text", tool_use: "call" },
  ...{ reasoning: "reasoning", message: "text", function_call: "call" },
};

/** The arguments of the calls that a Responses client got as whole items: it runs them at once. */
export function runnable(frames: readonly SseMessage[]): string[] {
  return eventsIn(frames).flatMap(({ type, item }) =>
    textOf(type) === "response.output_item.done" && textOf(item?.type) === "function_call"
      ? [textOf(item?.arguments)]
      : [],
  );
}

function eventsIn(frames: readonly SseMessage[]): Json[] {
  return frames.filter(({ data }) => data !== "[DONE]").map(({ data }) => parsed(data));
}
