/** Answers of several parts, and the parts that a client sees in them. */
import { SseDecoder, type SseMessage } from "../../../../src/core/sse/decode.ts";
import { bytes, streamProblem } from "../reading.ts";
import type { Part } from "./engines.ts";
import { type Answer, type ClientName, type Json, parsed, textOf } from "./wires.ts";

export { framesOf, orders } from "./engines.ts";

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

/** The answer that a client must have read for these parts. */
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

// ---- clients ---------------------------------------------------------------------------------------------------------

export function messagesOf(text: string): SseMessage[] {
  return new SseDecoder().push(bytes(text));
}

/**
 * The problem with the order in which a client gets the parts, which must come one at a time; null if there is none.
 */
export const orderProblem: Record<ClientName, (frames: readonly SseMessage[]) => string | null> = {
  chat: callsProblem,
  messages: (frames) => streamProblem("messages", frames),
  responses: (frames) => streamProblem("responses", frames),
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

/** The arguments of the calls that a Responses client got as whole items, which it runs at once. */
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
