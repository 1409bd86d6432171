/**
 * The conversation of a Messages caller as it was written, for an engine that has all of the protocol
 * (`Dialect.wholeMessages`). Such an engine refuses a thought if anything before it has changed, and its cache ends where a
 * request differs from the one before. So deferred tools, changes of tools and messages that are cleared stay where they
 * are, and a repair depends on its message alone: a conversation that grows keeps its beginning.
 */
import type { InferenceRequest, ReasoningPart, SystemTurn, Turn, Written } from "../../inference/request.ts";
import type { UpstreamAsk } from "../codec.ts";
import { compact, isGiven, type JsonObject, textOf } from "../json.ts";
import type { CountTokensRequest, MessageParam, MessagesTool } from "./contract.ts";
import { type Block, textBlocks, textFirst, thinkingBlock, type WireIds, wireIds } from "./encode-turns.ts";
import { signatureOf } from "./signature.ts";
import { asFunction, callableTools } from "./tools.ts";

interface Conversation<Message, Tool> {
  system: readonly Block[];
  messages: readonly Message[];
  tools: readonly Tool[];
}

/** `system`: the turn of the request's instructions. */
export function writtenOf(
  { messages, tools }: Pick<CountTokensRequest, "messages" | "tools">,
  turns: readonly Turn[],
  system: readonly SystemTurn[],
): Written {
  const wire = { system: textBlocks(system.flatMap(({ parts }) => parts)), messages, tools: tools ?? [] };
  return { protocol: "anthropic-messages", turns, wire };
}

/** Null if the engine gets the conversation from the request's turns. */
export function writtenConversation(
  { written, turns }: InferenceRequest,
  ask: UpstreamAsk,
): Conversation<JsonObject, JsonObject> | null {
  if (!ask.dialect?.wholeMessages || ask.instructionsInside === false) return null;
  if (written?.protocol !== "anthropic-messages" || written.turns !== turns) return null;
  const { system, messages, tools } = written.wire as unknown as Conversation<MessageParam, MessagesTool>;
  // Instructions at the head of the messages become part of `system`, which the turns have in one place.
  if (messages[0]?.role === "system") return null;
  const ids = wireIds();
  return {
    system,
    messages: messages.map((message) => messageOf(message, ids, ask)).filter((message) => message !== null),
    tools: callableTools(tools).map((tool) => compact(asFunction(tool))),
  };
}

/** The message with what the engine accepts; null if nothing is left of it. */
function messageOf(message: MessageParam, ids: WireIds, ask: UpstreamAsk): JsonObject | null {
  const { role, content } = message;
  const blocks = Array.isArray(content) ? blocksOf(content, ids, ask) : [];
  const ordered = role === "assistant" ? textFirst(blocks, ask.lost) : resultsFirst(blocks);
  const kept = ordered.length > 0 ? ordered : typeof content === "string" ? content : "";
  if (kept !== "" || role === "user") return { ...compact(message), content: kept };
  const { content: _, ...rest } = message;
  return role === "system" && isGiven(message.output_config) ? compact(rest) : null;
}

function blocksOf(blocks: readonly object[], ids: WireIds, ask: UpstreamAsk): Block[] {
  return blocks.map((block) => blockOf(block as Block, ids, ask)).filter((block) => block !== null);
}

/** The block without nulls; null for an empty text, and for a thought that the engine has not signed. */
function blockOf(block: Block, ids: WireIds, ask: UpstreamAsk): Block | null {
  switch (block.type) {
    case "text":
      return block.text === "" ? null : compact(block);
    case "thinking":
      return thinkingBlock(thoughtOf(block), ask) && compact(block);
    case "tool_use":
      return { ...compact(block), id: ids(String(block.id)), input: block.input ?? {} };
    case "tool_result": {
      const { content } = block;
      const inner = Array.isArray(content) ? blocksOf(content, ids, ask) : content;
      return { ...compact(block), tool_use_id: ids(String(block.tool_use_id)), content: inner ?? "" };
    }
    default:
      return compact(block);
  }
}

function thoughtOf({ thinking, signature }: Block): ReasoningPart {
  return {
    kind: "reasoning",
    text: textOf(thinking),
    ...compact({ signature: signatureOf(signature as string | undefined) }),
  };
}

function resultsFirst(blocks: Block[]): Block[] {
  const isResult = ({ type }: Block) => type === "tool_result";
  const first = blocks.findIndex((block) => !isResult(block));
  if (first < 0 || !blocks.slice(first).some(isResult)) return blocks;
  return [...blocks.filter(isResult), ...blocks.filter((block) => !isResult(block))];
}
