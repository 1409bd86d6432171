/** Turns the messages of a request into turns of the conversation. */
import type { AssistantTurn, InputPart, TextPart, ToolTurn, Turn } from "../../inference/request.ts";
import { isCall } from "../../inference/turns.ts";
import type { MessageParam, SystemMessageParam, ToolResultBlockParam, UserContentBlock } from "./contract.ts";
import { addInput, addInputs, assistantParts, type MakePath, type MessagesNeeds, textParts } from "./decode-blocks.ts";
import { withNative } from "./native.ts";

const messagesInStep = 4096;

/** Joins consecutive messages of one role. Tool results become turns of their own, before the other content of their message. */
export function* decodeMessages(
  messages: readonly MessageParam[],
  needs: MessagesNeeds,
  turns: Turn[],
): Generator<void, void, void> {
  const lastOfUser = messages.findLastIndex(({ role }) => role === "user");
  for (let at = 0; at < messages.length; at++) {
    if (at > 0 && at % messagesInStep === 0) yield;
    const message = messages[at]!;
    if (message.role === "user") {
      const { results, parts } = userTurns(message.content, at, needs);
      // Results go before the other content of their message, even where they stand after it.
      if (results.length > 0) insertResults(turns, results);
      if (parts.length > 0) append(turns, { role: "user", parts });
    } else if (message.role === "assistant") {
      const parts = assistantParts(message.content);
      if (parts.some(isCall)) needs.addAt("call or result", at, "content");
      if (parts.length > 0) append(turns, { role: "assistant", parts });
    } else if (at > lastOfUser || message.clear_at !== "next_user_message") {
      const parts = instructions(message.content);
      if (parts.length > 0) turns.push({ role: "system", parts });
    }
  }
}

function instructions(content: SystemMessageParam["content"]): TextPart[] {
  const text = Array.isArray(content) ? content.filter((block) => block.type === "text") : (content ?? "");
  return textParts(text).filter((part) => part.text !== "");
}

function append(turns: Turn[], turn: AssistantTurn | { role: "user"; parts: InputPart[] }): void {
  const last = turns.at(-1);
  if (last?.role === "user" && turn.role === "user") last.parts.push(...turn.parts);
  else if (last?.role === "assistant" && turn.role === "assistant") last.parts.push(...turn.parts);
  else turns.push(turn);
}

function insertResults(turns: Turn[], results: ToolTurn[]): void {
  const last = turns.at(-1);
  if (last?.role === "user") turns.splice(-1, 0, ...results);
  else turns.push(...results);
}

function userTurns(content: string | readonly UserContentBlock[], messageAt: number, needs: MessagesNeeds) {
  const results: ToolTurn[] = [];
  const parts: InputPart[] = [];
  if (typeof content === "string") return { results, parts: [{ kind: "text" as const, text: content }] };
  content.forEach((block, at) => {
    const path = () => `messages[${messageAt}].content[${at}]`;
    if (block.type === "tool_result") results.push(resultTurn(block, path, needs));
    else addInput(parts, block, path, needs);
  });
  return { results, parts };
}

function resultTurn(block: ToolResultBlockParam, path: MakePath, needs: MessagesNeeds): ToolTurn {
  needs.add("call or result", path);
  const { content } = block;
  const turn: ToolTurn = { role: "tool", callId: block.tool_use_id, parts: [] };
  if (typeof content === "string") turn.parts.push({ kind: "text", text: content });
  else addInputs(turn.parts, content ?? [], () => `${path()}.content`, needs);
  if (block.is_error === true) turn.failed = true;
  return withNative(turn, block, [], ["cache_control"]);
}
