/**
 * The answers of each kind of engine, written by hand as wire format, not by the codecs under test: whole, and part by
 * part, one after the other or interleaved, as engines do with the fragments of parallel calls.
 */
import { anthropicMessagesUpstream } from "../../../../src/core/protocol/anthropic-messages/codec.ts";
import type { UpstreamCodec } from "../../../../src/core/protocol/codec.ts";
import { openaiChatUpstream } from "../../../../src/core/protocol/openai-chat/codec.ts";
import { openaiResponsesUpstream } from "../../../../src/core/protocol/openai-responses/codec.ts";
import type { UpstreamProtocol } from "../../../../src/core/upstream/codecs.ts";
import type { Answer, EngineName } from "./wires.ts";

export type Part =
  | { kind: "reasoning" | "text"; text: string }
  | { kind: "call"; id: string; name: string; input: Record<string, unknown> };

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const told = (type: string, keys: object) => `event: ${type}\n${data({ type, ...keys })}`;
const halves = (text: string) =>
  [text.slice(0, text.length >> 1), text.slice(text.length >> 1)].filter((half) => half !== "");
const wholeOf = (part: Part) => (part.kind === "call" ? JSON.stringify(part.input) : part.text);

// ---- the order of a stream -------------------------------------------------------------------------------------------

/** The frames of one part: its beginning, the deltas that may be interleaved with those of other parts, and its end. */
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

/** The first item of each list, then the second of each, and so on. */
function inTurn<Item>(lists: Item[][]): Item[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}

/** The frames of a stream that has not ended yet. */
function begunOf(engine: EngineName, parts: Part[], order = "one after the other"): string[] {
  const { head, tell } = tellers[engine];
  return [head, ...orders[order]!(parts.map(tell))].filter((frame) => frame !== "");
}

/** The frames of a whole stream, whose parts come in the order that `order` names. */
export function framesOf(
  engine: EngineName,
  parts: Part[],
  order?: string,
  end: Answer["end"] = "tool_calls",
): string[] {
  return [...begunOf(engine, parts, order), tellers[engine].tail(parts, end)];
}

interface Teller {
  head: string;
  tell(part: Part, at: number): Told;
  tail(parts: Part[], end: Answer["end"]): string;
}

/** The frames of a part. Only those of calls can be interleaved: no engine writes two texts at once. */
function begun(part: Part, begin: string, pieces: string[], end: string): Told {
  if (part.kind === "call") return { isCall: true, begin, pieces, end };
  return { isCall: false, begin: begin + pieces.join(""), pieces: [], end };
}

// ---- chat ------------------------------------------------------------------------------------------------------------

const chunk = (delta: object, finish_reason: string | null = null) =>
  data({ choices: [{ index: 0, delta, finish_reason }] });
const chatUsage = { prompt_tokens: 3, completion_tokens: 2 };

const chatTeller: Teller = {
  head: chunk({ role: "assistant", content: "" }),
  tell(part, at) {
    if (part.kind !== "call") {
      const key = part.kind === "text" ? "content" : "reasoning_content";
      const pieces = halves(part.text).map((half) => chunk({ [key]: half }));
      return begun(part, "", pieces, "");
    }
    const fragment = (more: object) => chunk({ tool_calls: [{ index: at, ...more }] });
    const begin = fragment({ id: part.id, type: "function", function: { name: part.name, arguments: "" } });
    const pieces = halves(wholeOf(part)).map((half) => fragment({ function: { arguments: half } }));
    return begun(part, begin, pieces, "");
  },
  tail: (_, end) => `${chunk({}, end)}${data({ choices: [], usage: chatUsage })}data: [DONE]\n\n`,
};

function chatReply({ reasoning, text, calls, end }: Answer) {
  const tool_calls = calls.map(({ id, name, input }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  const message = {
    role: "assistant",
    content: text || null,
    reasoning_content: reasoning || undefined,
    tool_calls,
  };
  return { choices: [{ index: 0, message, finish_reason: end }], usage: chatUsage };
}

// ---- Messages --------------------------------------------------------------------------------------------------------

const messagesStops = { stop: "end_turn", length: "max_tokens", tool_calls: "tool_use", content_filter: "refusal" };
const stopOf = (end: Answer["end"]) => messagesStops[end as keyof typeof messagesStops];

function blockOf(part: Part) {
  if (part.kind === "call") return { type: "tool_use", id: part.id, name: part.name, input: part.input };
  if (part.kind === "reasoning") return { type: "thinking", thinking: part.text, signature: "S" };
  return { type: "text", text: part.text };
}

const messagesTeller: Teller = {
  head: told("message_start", {
    message: { id: "m", role: "assistant", content: [], usage: { input_tokens: 3, output_tokens: 0 } },
  }),
  tell(part, index) {
    const { empty, deltaOf } = {
      reasoning: {
        empty: { thinking: "", signature: "" },
        deltaOf: (thinking: string) => ({ type: "thinking_delta", thinking }),
      },
      text: { empty: { text: "" }, deltaOf: (text: string) => ({ type: "text_delta", text }) },
      call: { empty: { input: {} }, deltaOf: (partial_json: string) => ({ type: "input_json_delta", partial_json }) },
    }[part.kind];
    const begin = told("content_block_start", { index, content_block: { ...blockOf(part), ...empty } });
    const pieces = halves(wholeOf(part)).map((half) => told("content_block_delta", { index, delta: deltaOf(half) }));
    return begun(part, begin, pieces, told("content_block_stop", { index }));
  },
  tail: (_, end) =>
    told("message_delta", { delta: { stop_reason: stopOf(end) }, usage: { output_tokens: 2 } }) +
    told("message_stop", {}),
};

// ---- Responses -------------------------------------------------------------------------------------------------------

function itemOf(part: Part, at: number): { id: string; [key: string]: unknown } {
  if (part.kind === "call") {
    const { id: call_id, name } = part;
    return { id: `fc_${at}`, type: "function_call", call_id, name, arguments: wholeOf(part) };
  }
  if (part.kind === "reasoning")
    return { id: `rs_${at}`, type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: part.text }] };
  return { id: `msg_${at}`, type: "message", role: "assistant", content: [{ type: "output_text", text: part.text }] };
}

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
    const response = responsesReply(parts, end);
    return told(`response.${response.status}`, { response });
  },
};

function responsesReply(parts: Part[], end: Answer["end"]) {
  const reason = { length: "max_output_tokens", content_filter: "content_filter" }[end as string];
  return {
    id: "r",
    object: "response",
    status: reason ? "incomplete" : "completed",
    error: null,
    incomplete_details: reason ? { reason } : null,
    output: parts.map(itemOf),
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  };
}

const tellers: Record<EngineName, Teller> = { chat: chatTeller, messages: messagesTeller, responses: responsesTeller };

// ---- engines ---------------------------------------------------------------------------------------------------------

export interface Engine {
  protocol: UpstreamProtocol;
  codec: UpstreamCodec;
  stream(answer: Answer): string;
  /** A stream of the same answer with an error in the middle: `error`, or by default one of this kind of engine. */
  broken(answer: Answer, error?: object): string;
  whole(answer: Answer): unknown;
}

function partsOf({ reasoning, text, calls }: Answer): Part[] {
  return [
    ...(reasoning ? [{ kind: "reasoning" as const, text: reasoning }] : []),
    ...(text ? [{ kind: "text" as const, text }] : []),
    ...calls.map(({ id, name, input }) => ({ kind: "call" as const, id, name, input })),
  ];
}

const streamOf = (engine: EngineName) => (answer: Answer) =>
  framesOf(engine, partsOf(answer), undefined, answer.end).join("");
const brokenBy =
  (engine: EngineName, frame: (error: object) => string, own: object) =>
  (answer: Answer, error = own) =>
    begunOf(engine, partsOf(answer)).join("") + frame(error);

export const engines: Record<EngineName, Engine> = {
  chat: {
    protocol: "openai-chat",
    codec: openaiChatUpstream,
    stream: streamOf("chat"),
    broken: brokenBy("chat", (error) => data({ error }), { message: "x", code: 500 }),
    whole: chatReply,
  },
  messages: {
    protocol: "anthropic-messages",
    codec: anthropicMessagesUpstream,
    stream: streamOf("messages"),
    broken: brokenBy("messages", (error) => told("error", { error }), { type: "api_error", message: "x" }),
    whole: (answer) => ({
      id: "m",
      type: "message",
      role: "assistant",
      content: partsOf(answer).map(blockOf),
      stop_reason: stopOf(answer.end),
      usage: { input_tokens: 3, output_tokens: 2 },
    }),
  },
  responses: {
    protocol: "openai-responses",
    codec: openaiResponsesUpstream,
    stream: streamOf("responses"),
    broken: brokenBy("responses", (error) => told("response.failed", { response: { status: "failed", error } }), {
      code: "server_error",
      message: "x",
    }),
    whole: (answer) => responsesReply(partsOf(answer), answer.end),
  },
};
