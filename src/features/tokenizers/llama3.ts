/**
 * The chat template of Llama 3.1 to 3.3 Instruct: each message has a header before and an end token after its text, and
 * the tools are JSON in the first question. The template's own words always have the same length.
 */
import type { AnswerPart } from "../../core/inference/event.ts";
import { textOf } from "../../core/protocol/json.ts";
import type { Chat, ChatMessage, Prompt, Template } from "./prompt.ts";

/**
 * The numbers of tokens in the beginning of the text; in the system message's header and end, and its dates; and in the
 * header of the answer.
 */
const frame = 1 + 3 + 21 + 1 + 4;
/** The numbers of tokens that tools add to the system message, and to the first question. */
const toolsFrame = 5 + 51;
/**
 * The number of tokens around a message's text: its header, its role, the end of the header with its blank line, and
 * the end of the message.
 */
const messageFrame = 5;

export const llama3: Template = ({ messages, tools }: Chat): Prompt => {
  const [first, ...others] = messages;
  const leads = first?.role === "system";
  const prompt: Prompt = { fixed: frame + (tools.length > 0 ? toolsFrame : 0), texts: [] };
  if (leads) prompt.texts.push(saidIn(first));
  for (const { wire } of tools) prompt.texts.push(`${JSON.stringify(wire, null, 4)}\n\n`);
  for (const message of leads ? others : messages) addMessage(prompt, message);
  return prompt;
};

/** Makes the prompt form of an answer. The whole answer is one message. */
export function llama3Answer(parts: readonly AnswerPart[]): Prompt {
  const texts = parts.map(({ kind, toolName, text }) => (kind === "tool-call" ? callOf(toolName, text) : text));
  return { fixed: 0, texts };
}

function addMessage(prompt: Prompt, message: ChatMessage): void {
  if (message.calls.length > 0) {
    for (const call of message.calls) {
      prompt.fixed += messageFrame;
      prompt.texts.push(callOf(call.name, call.arguments));
    }
    return;
  }
  // The role of a tool's results, `ipython`, is two tokens. Results are written as a JSON string.
  const isResult = message.role === "tool";
  prompt.fixed += messageFrame + (isResult ? 1 : 0);
  prompt.texts.push(isResult ? JSON.stringify(saidIn(message)) : saidIn(message));
}

function callOf(name: string, args: string): string {
  return `{"name": "${name}", "parameters": ${spaced(args)}}`;
}

function saidIn({ texts }: ChatMessage): string {
  return texts.join("\n").trim();
}

/** JSON as templates write it: a space after each comma and colon. Text that is not JSON stays as it is. */
function spaced(json: string): string {
  try {
    return written(JSON.parse(json), 0);
  } catch {
    return json;
  }
}

const depth_max = 100;

function written(value: unknown, depth: number): string {
  if (typeof value !== "object" || value === null || depth > depth_max) return textOf(JSON.stringify(value));
  if (Array.isArray(value)) return `[${value.map((item) => written(item, depth + 1)).join(", ")}]`;
  const entries = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${written(item, depth + 1)}`);
  return `{${entries.join(", ")}}`;
}
