/**
 * Turns the conversation into messages. Consecutive turns of one role become one message, in which tool results come first,
 * directly after their calls. Blocks of a Messages caller are sent as they were written.
 */
import type {
  AssistantPart,
  InputPart,
  Native,
  ReasoningPart,
  TextPart,
  ToolTurn,
  Turn,
} from "../../inference/request.ts";
import { inEngineOrder, isSystem } from "../../inference/turns.ts";
import { isCarried } from "../carried.ts";
import type { UpstreamAsk } from "../codec.ts";
import { dialects } from "../dialects.ts";
import type { JsonObject } from "../json.ts";
import { toolInputOf } from "../tool-input.ts";
import { documentSource, imageSource } from "./media.ts";
import { wireOf } from "./native.ts";

type Block = Readonly<JsonObject>;

interface Message {
  role: "user" | "assistant" | "system";
  content: Block[];
}

/** The messages of a conversation without the instructions at its head, which are in `system`. */
export function encodeTurns(turns: readonly Turn[], ask: UpstreamAsk, ids = wireIds()): JsonObject[] {
  const messages: Message[] = [];
  for (const turn of inEngineOrder(turns, ask.instructionsInside)) {
    const role = roleOf(turn);
    const last = messages.at(-1);
    const message = last?.role === role ? last : { role, content: [] };
    addBlocks(message.content, turn, ids, ask);
    // An empty message is left out, unless it is the user's.
    if (message !== last && (message.content.length > 0 || role === "user")) messages.push(message);
  }
  const { dialect = dialects.generic, lost } = ask;
  const isReordered = dialect.callBeforeText === "text first";
  return messages.map(({ role, content }) => {
    const blocks = isReordered && role === "assistant" ? textFirst(content, lost) : content;
    return { role, content: blocks.length > 0 ? blocks : "" };
  });
}

/** Moves calls behind all other blocks: engines refuse a text that follows a call. */
function textFirst(content: Block[], lost: UpstreamAsk["lost"]): Block[] {
  const firstCall = content.findIndex(isCallBlock);
  if (firstCall < 0 || !content.slice(firstCall).some(({ type }) => type === "text")) return content;
  lost?.("order");
  return [...content.filter((block) => !isCallBlock(block)), ...content.filter(isCallBlock)];
}

function isCallBlock({ type }: Block): boolean {
  return type === "tool_use";
}

function roleOf(turn: Turn): Message["role"] {
  if (isSystem(turn)) return "system";
  return turn.role === "assistant" ? "assistant" : "user";
}

function addBlocks(content: Block[], turn: Turn, ids: WireIds, ask: UpstreamAsk): void {
  if (turn.role === "tool") content.push(resultBlock(turn, ids, ask));
  else if (turn.role === "assistant")
    blocks<AssistantPart>(withoutBlanks(turn.parts), (part) => assistantBlock(part, ids, ask), content);
  else blocks<InputPart>(turn.role === "user" ? turn.parts : withoutBlanks(turn.parts), inputBlock, content);
}

/**
 * The parts. If every text in them is blank, the texts are left out: engines refuse a message, and instructions, with
 * nothing but blank text.
 */
function withoutBlanks<Part extends AssistantPart | InputPart>(parts: readonly Part[]): readonly Part[] {
  const isBlank = (part: AssistantPart | InputPart) =>
    part.kind === "text" && part.text.trim() === "" && part.native === undefined;
  const hasText = parts.some((part) => part.kind === "text" && !isBlank(part));
  return hasText ? parts : parts.filter((part) => !isBlank(part));
}

export function textBlocks(parts: readonly TextPart[]): Block[] {
  return blocks(withoutBlanks(parts), inputBlock);
}

/** The block of a part. Parts that cannot be expressed were refused before (encode-request.ts). */
function inputBlock(part: InputPart): JsonObject | null {
  switch (part.kind) {
    case "text":
      return { type: "text", text: part.text };
    case "image": {
      const source = imageSource(part.url);
      return source && { type: "image", source };
    }
    case "file": {
      const source = documentSource(part);
      return source && { type: "document", source, title: part.filename };
    }
    case "audio":
      return null;
  }
}

/**
 * The blocks of parts: a part's own wire object (the block as the caller wrote it) if it has one, or else the block
 * that `encode` makes. Parts that share a wire object become one block. Empty texts are left out, because engines
 * refuse them.
 */
function blocks<Part extends object>(
  parts: readonly Part[],
  encode: (part: Part) => JsonObject | null,
  out: Block[] = [],
  isWhole = false,
): Block[] {
  let before: Native | undefined;
  for (const part of parts) {
    const { native } = part as { native?: Native };
    const wire = wireOf(native, isWhole);
    if (wire && native === before) continue;
    before = native;
    const block = wire ?? encode(part);
    if (block && (block.type !== "text" || block.text !== "")) out.push(block);
  }
  return out;
}

function resultBlock({ callId, parts, failed, native }: ToolTurn, ids: WireIds, { dialect }: UpstreamAsk): JsonObject {
  const content = blocks(parts, inputBlock, [], dialect?.wholeMessages);
  const only = content.length === 1 ? content[0] : undefined;
  const isPlain = only?.type === "text" && Object.keys(only).length === 2;
  const block: JsonObject = { type: "tool_result", tool_use_id: ids(callId), content: isPlain ? only.text : content };
  if (content.length === 0) block.content = "";
  if (failed) block.is_error = true;
  const wire = wireOf(native);
  return wire ? { ...block, ...wire } : block;
}

function assistantBlock(part: AssistantPart, ids: WireIds, ask: UpstreamAsk): JsonObject | null {
  switch (part.kind) {
    case "text":
    case "refusal":
      return { type: "text", text: part.text };
    case "reasoning":
      return thinkingBlock(part, ask);
    case "tool-call":
      return {
        type: "tool_use",
        id: ids(part.callId),
        name: part.toolName,
        input: part.input ?? toolInputOf(part.arguments),
      };
  }
}

/**
 * The thinking block of a reasoning part; null if the part has no signature and the engine signs its reasoning: such an
 * engine would refuse the block.
 */
function thinkingBlock(
  { text, signature, encrypted }: ReasoningPart,
  { dialect = dialects.generic, lost }: UpstreamAsk,
): JsonObject | null {
  if (encrypted !== undefined) return { type: "redacted_thinking", data: encrypted };
  if (text === "" && dialect.strips.includes("thinking.empty")) return null;
  if (isCarried(signature)) lost?.("carried");
  else if (signature !== undefined) return { type: "thinking", thinking: text, signature };
  if (dialect.unsignedThoughts && text !== "") return { type: "thinking", thinking: text };
  if (text !== "") lost?.("thoughts");
  return null;
}

// ---- ids -------------------------------------------------------------------------------------------------------------

type WireIds = (callId: string) => string;
const invalidCharacters = /[^a-zA-Z0-9_-]/g;

/** Makes ids that Messages accepts: letters, digits, `_` and `-`. Different ids stay different. */
export function wireIds(): WireIds {
  const idOf = new Map<string, string>();
  const used = new Set<string>();
  return (callId) => {
    const before = idOf.get(callId);
    if (before !== undefined) return before;
    const base = callId.replace(invalidCharacters, "_");
    let id = base;
    for (let ordinal = 1; used.has(id); ordinal += 1) id = `${base}_${ordinal}`;
    used.add(id);
    idOf.set(callId, id);
    return id;
  };
}
