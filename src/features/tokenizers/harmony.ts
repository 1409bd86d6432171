/**
 * The harmony format, which OpenAI's open models read. Tested against its makers' own library
 * (test/features/tokenizers). The words of its system message are the same in every prompt except for the date and the
 * effort, whose length does not change.
 */
import type { AnswerPart } from "../../core/inference/event.ts";
import { argumentsOf } from "./harmony-types.ts";
import type { Chat, ChatMessage, ChatTool, Prompt, Template } from "./prompt.ts";

/** The number of tokens in the system message and in the beginning of the answer. */
const frame = 63;
/** The number of tokens that tools add to the system message. */
const toolsFrame = 14;

export const harmony: Template = ({ messages, tools }: Chat): Prompt => {
  const [first, ...others] = messages;
  const leads = first?.role === "system";
  const instructions = leads ? first.texts.join("") : "";
  const prompt: Prompt = { fixed: frame + (tools.length > 0 ? toolsFrame : 0), texts: [] };
  if (instructions !== "" || tools.length > 0) add(prompt, 4, developerText(instructions, tools));
  const conversation = leads ? others : messages;
  const lastQuestion = conversation.findLastIndex((message) => message.role === "user");
  for (const [at, message] of conversation.entries()) addMessage(prompt, message, at > lastQuestion);
  return prompt;
};

/**
 * Adds a message to the prompt. `isOpen`: the message comes after the last question, so that the model still sees its
 * reasoning.
 */
function addMessage(prompt: Prompt, message: ChatMessage, isOpen: boolean): void {
  const text = message.texts.join("");
  if (message.role === "tool") {
    // The 6 tokens include the author's name and the recipient, with the channel.
    add(prompt, 6, `functions.${message.toolName} to=assistant`, text);
  } else if (message.role === "assistant") {
    if (isOpen && message.reasoning !== "") add(prompt, 6, message.reasoning);
    if (text !== "" || message.calls.length === 0) add(prompt, 6, text);
    for (const call of message.calls) add(prompt, 7, `assistant to=functions.${call.name}`, call.arguments);
  } else {
    add(prompt, 4, text);
  }
}

/** Makes the prompt form of an answer. Each part of the answer is a message of its own. */
export function harmonyAnswer(parts: readonly AnswerPart[]): Prompt {
  const answer: Prompt = { fixed: 0, texts: [] };
  for (const { kind, toolName, text } of parts) {
    if (kind === "tool-call") add(answer, 7, `assistant to=functions.${toolName}`, text);
    else add(answer, 6, text);
  }
  return answer;
}

function add(prompt: Prompt, fixed: number, ...texts: string[]): void {
  prompt.fixed += fixed;
  for (const text of texts) if (text !== "") prompt.texts.push(text);
}

function developerText(instructions: string, tools: readonly ChatTool[]): string {
  const parts: string[] = [];
  if (instructions !== "") parts.push(`# Instructions\n\n${instructions}`);
  if (tools.length > 0)
    parts.push(
      `# Tools\n\n## functions\n\nnamespace functions {\n\n${tools.map(toolText).join("")}} // namespace functions`,
    );
  return parts.join("\n\n");
}

function toolText({ name, description, parameters }: ChatTool): string {
  const about =
    description === ""
      ? ""
      : description
          .split("\n")
          .map((line) => `// ${line}\n`)
          .join("");
  const hasArguments = parameters !== null && parameters.properties !== undefined;
  return `${about}type ${name} = ${hasArguments ? argumentsOf(parameters) : "() => any"};\n\n`;
}
