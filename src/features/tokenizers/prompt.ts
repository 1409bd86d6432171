/**
 * TOKENS: how many tokens an input is, by the vocabulary and the chat template of its model. Used for counts
 * (`count_tokens`), and to charge a client that left; runs in a worker. Holds are sized by an estimate instead
 * (src/core/usage/input-estimate.ts). A prompt here is the part of a template's result that is counted: texts, each
 * between two special tokens, and the number of all other tokens.
 */
import type { AnswerPart } from "../../core/inference/event.ts";
import { isObject } from "../../core/protocol/json.ts";

export interface Prompt {
  /** The number of special tokens, role names, and words of the template that are the same in every prompt. */
  fixed: number;
  texts: string[];
}

/** A message of chat completions in the form in which engines get it; missing fields are "" or empty. */
export interface ChatMessage {
  role: string;
  /** The text of each part. */
  texts: string[];
  reasoning: string;
  calls: { name: string; arguments: string }[];
  /** For the result of a tool: the tool's name. */
  toolName: string;
}

export interface ChatTool {
  name: string;
  description: string;
  parameters: Record<string, unknown> | null;
  /** The tool in the form in which engines get it. */
  wire: unknown;
}

export interface Chat {
  messages: ChatMessage[];
  tools: ChatTool[];
}

export type Template = (chat: Chat) => Prompt;

/** Makes the prompt form of an answer: each of its parts is between the same special tokens as in a prompt. */
export type AnswerTemplate = (parts: readonly AnswerPart[]) => Prompt;

/** The parts of a chat completions body that are counted. */
export function chatOf(body: Record<string, unknown>): Chat {
  const names = new Map<string, string>();
  const messages = objectsIn(body.messages).map((message): ChatMessage => {
    const calls = objectsIn(message.tool_calls).map((call) => {
      const called = isObject(call.function) ? call.function : {};
      names.set(text(call.id), text(called.name));
      return { name: text(called.name), arguments: text(called.arguments) };
    });
    return {
      role: text(message.role),
      texts: textsOf(message.content),
      reasoning: text(message.reasoning_content),
      calls,
      toolName: names.get(text(message.tool_call_id)) ?? "",
    };
  });
  const tools = objectsIn(body.tools).map((wire): ChatTool => {
    const tool = isObject(wire.function) ? wire.function : {};
    const { name, description, parameters } = tool;
    return {
      name: text(name),
      description: text(description),
      parameters: isObject(parameters) ? parameters : null,
      wire,
    };
  });
  return { messages, tools };
}

function textsOf(content: unknown): string[] {
  if (typeof content === "string") return content === "" ? [] : [content];
  return objectsIn(content).flatMap((part) => (typeof part.text === "string" ? [part.text] : []));
}

function objectsIn(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
