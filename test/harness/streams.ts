/** Checks whether the frames of an event stream follow the grammar of its protocol. */
import type { TSchema } from "typebox";
import type { StreamGrammar } from "../../src/core/operations/operation.ts";
import { MessagesError } from "../../src/core/protocol/anthropic-messages/contract.ts";
import { ChatError } from "../../src/core/protocol/openai-chat/contract.ts";
import { framesOf, namedEvent, type Problems, parsed } from "./frames.ts";
import { responsesProblems } from "./responses-stream.ts";

type Check = (body: string, event: TSchema, problemsOf: Problems) => string[];

export const streamProblems: Record<StreamGrammar, Check> = {
  chat: chatProblems,
  messages: messagesProblems,
  responses: responsesProblems,
};

/**
 * Checks a stream of Chat Completions: each frame is one data line or a comment. Chunks come first, then perhaps an
 * error, then exactly one `[DONE]`, then nothing.
 */
function chatProblems(body: string, chunk: TSchema, problemsOf: Problems): string[] {
  const problems: string[] = [];
  const events = framesOf(body, problems);
  const stray = events.find((frame) => !frame.startsWith("data: ") || frame.includes("\n"));
  if (stray !== undefined) problems.push(`A frame is not one data line: ${stray.slice(0, 100)}`);
  const data = events.map((frame) => frame.slice("data: ".length));
  if (data.pop() !== "[DONE]") problems.push("The stream does not end with [DONE].");
  const ids = new Set<unknown>();
  for (const [index, text] of data.entries()) {
    const value = parsed(text);
    if (isError(value)) {
      problems.push(...problemsOf(ChatError, value));
      if (index < data.length - 1) problems.push("Something follows the error.");
    } else {
      problems.push(...problemsOf(chunk, value ?? text));
      ids.add((value as { id?: unknown } | undefined)?.id);
    }
  }
  if (ids.size > 1) problems.push("The id changes within the stream.");
  return problems;
}

/**
 * The grammar of a Messages stream: the key is the type of an event; the value lists the events that may follow it. In
 * addition, `ping` may come anywhere after the start, and `error` may be the last event after any other.
 */
const after: Record<string, readonly string[]> = {
  "": ["message_start"],
  message_start: ["content_block_start", "message_delta"],
  content_block_start: ["content_block_delta", "content_block_stop"],
  content_block_delta: ["content_block_delta", "content_block_stop"],
  content_block_stop: ["content_block_start", "message_delta"],
  message_delta: ["message_stop"],
  message_stop: [],
  error: [],
};
/** The key is the type of a content block; the value lists the types of deltas that the block may have. */
const deltas: Record<string, readonly string[]> = {
  text: ["text_delta", "citations_delta"],
  thinking: ["thinking_delta", "signature_delta"],
  redacted_thinking: [],
  tool_use: ["input_json_delta"],
};

interface MessagesEvent {
  type: string;
  index?: number;
  content_block?: { type: string };
  delta?: { type: string };
}

function messagesProblems(body: string, event: TSchema, problemsOf: Problems): string[] {
  const problems: string[] = [];
  let last = "";
  let index = -1;
  let block = "";
  for (const frame of framesOf(body, problems)) {
    const value = namedEvent<MessagesEvent>(frame, problems);
    if (value === undefined) continue;
    const { type } = value;
    problems.push(...problemsOf(type === "error" ? MessagesError : event, value));
    if (type === "ping" && last !== "") continue;
    if (type !== "error" && !after[last]?.includes(type)) problems.push(`'${type}' follows '${last}'.`);
    if (last === "error" || last === "message_stop") problems.push(`'${type}' comes after the end.`);
    if (type === "content_block_start") {
      index += 1;
      block = value.content_block?.type ?? "";
    }
    if (type.startsWith("content_block") && value.index !== index) problems.push(`The index is ${value.index}.`);
    if (type === "content_block_delta" && !deltas[block]?.includes(value.delta?.type ?? ""))
      problems.push(`A '${value.delta?.type}' stands in a '${block}' block.`);
    last = type;
  }
  if (last !== "message_stop" && last !== "error") problems.push(`The stream ends with '${last}'.`);
  return problems;
}

function isError(value: unknown): boolean {
  return typeof value === "object" && value !== null && "error" in value;
}
