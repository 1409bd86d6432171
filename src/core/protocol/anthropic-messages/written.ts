/**
 * The conversation of a Messages caller as it was written, for an engine that supports the whole protocol
 * (`Dialect.wholeMessages`). Such an engine refuses a thinking block if anything before the block has changed, and its
 * cache ends where a request differs from the previous request. So deferred tools, changes of tools and messages that
 * are cleared stay where they are, and each message is encoded by itself: when a conversation grows, its beginning
 * stays the same.
 */
import type { InferenceRequest, SystemTurn, Tool, Turn, Written } from "../../inference/request.ts";
import type { UpstreamAsk } from "../codec.ts";
import { compact, type JsonObject } from "../json.ts";
import type { MessageParam, MessagesRequest, MessagesTool, SystemMessageParam } from "./contract.ts";
import { MessagesNeeds, textParts } from "./decode-blocks.ts";
import { decodeMessages } from "./decode-messages.ts";
import { encodeTurns, textBlocks, wireIds } from "./encode-turns.ts";
import { changesIn, definedBy } from "./tool-changes.ts";
import { callableTools, decodeTool, encodeTool, mayBeDeferred } from "./tools.ts";

/** The fields of `Written.wire`. */
interface Conversation {
  system: readonly SystemTurn[];
  messages: MessageParam[];
  /** The tools as they were listed, and those of them that the model gets. */
  listed: readonly MessagesTool[];
  tools: readonly Tool[];
  effort: unknown;
}

type Wire = Pick<MessagesRequest, "messages" | "tools" | "output_config">;

export function writtenOf(
  { messages, tools: listed, output_config }: Wire,
  { turns, system, tools }: { turns: readonly Turn[]; system: readonly SystemTurn[]; tools: readonly Tool[] },
): Written {
  const wire: Conversation = { system, messages, listed: listed ?? [], tools, effort: output_config?.effort };
  return { protocol: "anthropic-messages", turns, wire: { ...wire } };
}

/** The conversation as it was written, for this engine; null if the engine gets the request's turns instead. */
export function writtenConversation({ written, turns, reasoning }: InferenceRequest, ask: UpstreamAsk) {
  if (!ask.dialect?.wholeMessages || ask.instructionsInside === false) return null;
  if (written?.protocol !== "anthropic-messages" || written.turns !== turns) return null;
  const { system, messages, listed, tools, effort } = written.wire as unknown as Conversation;
  if (!isInOrder(messages) || !isCallable(messages, listed)) return null;
  const ids = wireIds();
  const sent = messages.flatMap((message) =>
    message.role === "system"
      ? systemMessage(message, reasoning !== undefined)
      : encodeTurns(turnsOf(message), ask, ids),
  );
  // Instructions at the beginning of a conversation belong in `system`.
  if (sent[0]?.role === "system") return null;
  const keepsDeferred = mayBeDeferred(listed, tools);
  return {
    system: textBlocks(system.flatMap(({ parts }) => parts)),
    messages: sent,
    tools: tools.map((tool) => encodeTool(tool, keepsDeferred)),
    effort,
  };
}

/** Whether results come directly after their calls, and no message of the model directly follows another. */
function isInOrder(messages: readonly MessageParam[]): boolean {
  return messages.every((message, at) => {
    const before = messages[at - 1];
    if (message.role === "assistant") return before?.role !== "assistant";
    return !hasBlock(message, isResult) || before?.role === "assistant" || !hasBlock(before, (one) => !isResult(one));
  });
}

const isResult = ({ type }: { type: string }) => type === "tool_result";

/** Whether a message has a block for which `isSuch` is true. Content that is a string counts as a text block. */
function hasBlock(message: MessageParam | undefined, isSuch: (block: { type: string }) => boolean): boolean {
  const { content } = message ?? {};
  return Array.isArray(content) ? content.some(isSuch) : isSuch({ type: "text" });
}

/** Whether the model gets every tool that a system message adds or removes. */
function isCallable(messages: MessageParam[], listed: readonly MessagesTool[]): boolean {
  const changes = changesIn({ messages });
  if (changes.length === 0) return true;
  const defined = definedBy(changes).map(({ tool }) => tool);
  const names = new Set(callableTools([...listed, ...defined]).map(({ name }) => name));
  return changes.every(({ block: { tool } }) =>
    names.has(tool.type === "tool_definition" ? (tool.definition.name ?? "") : tool.name),
  );
}

function turnsOf(message: MessageParam): Turn[] {
  const turns: Turn[] = [];
  for (const _ of decodeMessages([message], new MessagesNeeds(), turns));
  return turns;
}

/** A system message with its changes of the tools; an empty list if the message has no block and no effort left. */
function systemMessage({ content, clear_at, output_config }: SystemMessageParam, reasons: boolean): JsonObject[] {
  const written = Array.isArray(content) ? content : [{ type: "text" as const, text: content ?? "" }];
  const blocks = written.flatMap((block) =>
    block.type === "text" ? textBlocks(textParts([block])) : [changeBlock(block)],
  );
  const effort = reasons ? output_config?.effort : undefined;
  if (blocks.length === 0 && !effort) return [];
  const config = effort ? { output_config: { effort } } : {};
  return [{ role: "system", content: blocks, ...compact({ clear_at }), ...config }];
}

type Change = ReturnType<typeof changesIn>[number]["block"];

function changeBlock({ type, tool }: Change): JsonObject {
  if (tool.type !== "tool_definition") return { type, tool: { type: tool.type, name: tool.name } };
  return { type, tool: { type: tool.type, definition: encodeTool(decodeTool(tool.definition), true) } };
}
