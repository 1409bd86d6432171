/** Turns the conversation into input items. Results come directly after their calls. Each call and each reasoning is an item. */
import type {
  AssistantPart,
  AssistantTurn,
  InputPart,
  ReasoningPart,
  ToolCallPart,
  ToolTurn,
  Turn,
} from "../../inference/request.ts";
import { inEngineOrder } from "../../inference/turns.ts";
import { isCarried } from "../carried.ts";
import type { UpstreamAsk } from "../codec.ts";
import { dialects } from "../dialects.ts";
import type { JsonObject } from "../json.ts";
import { wireOf } from "./native.ts";

type Item = Readonly<JsonObject>;

/** The items of a conversation without the instructions at its head, which are in `instructions`. */
export function encodeTurns(turns: readonly Turn[], ask: UpstreamAsk): Item[] {
  const items: Item[] = [];
  /** The ids of calls that the engine gets as custom calls. Their results must be custom, too. */
  const custom = new Set<string>();
  let reasonings = 0;
  for (const turn of inEngineOrder(turns, ask.instructionsInside)) {
    switch (turn.role) {
      case "assistant":
        for (const part of turn.parts) {
          if (part.kind === "tool-call" && wireOf(part.native)?.type === "custom_tool_call") custom.add(part.callId);
        }
        items.push(...answerItems(turn, () => reasonings++, ask));
        break;
      case "tool":
        items.push(resultItem(turn, custom.has(turn.callId)));
        break;
      default:
        items.push({ type: "message", role: turn.role, content: turn.parts.map(inputPart) });
    }
  }
  return items;
}

/** Writes the model's turn as items. Consecutive texts become one message. */
function answerItems({ parts }: AssistantTurn, nextId: () => number, ask: UpstreamAsk): Item[] {
  const items: Item[] = [];
  let content: JsonObject[] | null = null;
  for (const part of parts) {
    const text = textPart(part);
    if (text && content) content.push(text);
    else if (text) {
      content = [text];
      items.push({ type: "message", role: "assistant", content });
    } else {
      content = null;
      if (part.kind === "tool-call") items.push(callItem(part));
      if (part.kind === "reasoning") items.push(...reasoningItems(part, nextId, ask));
    }
  }
  return items;
}

function textPart(part: AssistantPart): JsonObject | null {
  if (part.kind === "text") return { type: "output_text", text: part.text, annotations: [] };
  return part.kind === "refusal" ? { type: "refusal", refusal: part.text } : null;
}

function callItem({ callId, toolName, arguments: written, native }: ToolCallPart): Item {
  const item = wireOf(native) ?? { type: "function_call", call_id: callId, name: toolName, arguments: written };
  // Engines parse the arguments as JSON, which an empty text is not.
  return item.type === "function_call" && written.trim() === "" ? { ...item, arguments: "{}" } : item;
}

/**
 * The items of a reasoning part. Each has the engine's proof (a signature or encrypted reasoning), or else the text and
 * an id, which some engines require.
 */
function reasoningItems(
  part: ReasoningPart,
  nextId: () => number,
  { dialect = dialects.generic, lost }: UpstreamAsk,
): JsonObject[] {
  const { text, signature } = part;
  if (isCarried(signature)) lost?.("carried");
  // An engine that does not sign its reasoning ignores a proof, and refuses a reasoning item without a text.
  const proof = dialect.unsignedThoughts ? undefined : proofOf(part);
  if (proof === undefined && text === "") {
    if (proofOf(part) !== undefined) lost?.("thoughts");
    return [];
  }
  // An engine that accepts no reasoning text looks up its own stored reasoning by the id, and refuses an id that it
  // does not know.
  if (proof === undefined && dialect.reasoning.out.length === 0) {
    if (text !== "") lost?.("thoughts");
    return [];
  }
  if (proof === undefined)
    return [{ type: "reasoning", id: `rs_${nextId()}`, summary: [], content: [{ type: "reasoning_text", text }] }];
  return [
    { type: "reasoning", summary: text === "" ? [] : [{ type: "summary_text", text }], encrypted_content: proof },
  ];
}

/** The engine's proof of its reasoning. An empty signature is no proof: engines that sign nothing send one. */
function proofOf({ signature, encrypted }: ReasoningPart): string | undefined {
  return signature && !isCarried(signature) ? signature : encrypted;
}

function resultItem({ callId, parts, failed }: ToolTurn, custom: boolean): JsonObject {
  const [first, ...others] = parts;
  const marked: InputPart[] =
    first?.kind === "text"
      ? [{ kind: "text", text: `Error: ${first.text}` }, ...others]
      : [{ kind: "text", text: "Error: " }, ...parts];
  const output = failed ? marked : parts;
  const only = output.length === 1 && output[0]?.kind === "text" ? output[0].text : null;
  return {
    type: custom ? "custom_tool_call_output" : "function_call_output",
    call_id: callId,
    output: only ?? (output.length === 0 ? "" : output.map(inputPart)),
  };
}

/** The wire form of a part. Audio, which the protocol lacks, was refused before (encode-request.ts). */
function inputPart(part: InputPart): JsonObject {
  switch (part.kind) {
    case "image":
      return { type: "input_image", image_url: part.url, detail: part.detail ?? "auto" };
    case "file":
      return { type: "input_file", filename: part.filename ?? "file.pdf", file_data: dataUrl(part) };
    case "audio":
      return { type: "input_text", text: "" };
    case "text":
      return { type: "input_text", text: part.text };
  }
}

function dataUrl({ data, mediaType }: Extract<InputPart, { kind: "file" }>): string {
  return /^data:/i.test(data) ? data : `data:${mediaType ?? "application/pdf"};base64,${data}`;
}
