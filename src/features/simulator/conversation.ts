/** Reads a conversation: the question, its directives, attachments, tool results, and the prompt tokens. */
import { type Directives, separated } from "./directives.ts";
import type { ChatRequest, Message } from "./request.ts";
import { hash, inputTokens } from "./text.ts";

export interface Conversation {
  /** The seed of the answer, derived from the messages: the same messages give the same answer, streamed or not. */
  seed: number;
  /** The last user message, without its directives. */
  question: string;
  directives: string;
  images: number;
  files: number;
  /** The results of the latest tool calls, each with the name of its tool. */
  results: { name: string; text: string }[];
  prompt_tokens: number;
}

export interface AnswerInput {
  request: ChatRequest;
  conversation: Conversation;
  directives: Directives;
  /** The sentence with which the simulator introduces itself. */
  says: string;
}

const message_tokens = 4;
const attachment_tokens = 85;

/**
 * Reads a conversation. Its prompt tokens are the sum of:
 * - 3;
 * - for each message, 4, and the tokens of its text and tool calls, estimated by length;
 * - for each image or file, 85;
 * - for the tools, the tokens of their JSON, estimated by length.
 */
export function readConversation(request: ChatRequest): Conversation {
  const { messages } = request;
  const { directives, rest } = separated(messages.findLast((message) => message.role === "user")?.text ?? "");
  let seed = 0;
  let prompt_tokens = 3 + (request.tools.length > 0 ? inputTokens(JSON.stringify(request.tools)) : 0);
  for (const message of messages) {
    const calls = message.calls.map((call) => `${call.id}${call.name}${call.arguments}`).join("");
    const attachments = message.images + message.files;
    seed = hash(message.role + message.text + calls + attachments, seed);
    prompt_tokens += message_tokens + inputTokens(message.text + calls) + attachment_tokens * attachments;
  }
  return {
    seed,
    question: rest,
    directives,
    images: sum(messages.map((message) => message.images)),
    files: sum(messages.map((message) => message.files)),
    results: results(messages),
    prompt_tokens,
  };
}

function results(messages: Message[]): Conversation["results"] {
  const answer = messages.findLastIndex((message) => message.role === "assistant");
  const calls = new Map(messages[answer]?.calls.map((call) => [call.id, call.name]));
  return messages
    .slice(answer + 1)
    .filter((message) => message.role === "tool" || message.role === "function")
    .map((message) => ({ name: calls.get(message.toolCallId ?? "") ?? "a tool", text: message.text }));
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
