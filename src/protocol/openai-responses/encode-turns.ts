/** Turns of the centre → input items: results directly after their calls, each call and each thought an item of its own. */
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
import type { UpstreamAsk } from "../codec.ts";
import type { JsonObject } from "../json.ts";
import { wireOf } from "./native.ts";

type Item = Readonly<JsonObject>;

/** Conversation without the instructions at its head (those are `instructions`). */
export function encodeTurns(turns: readonly Turn[], ask: UpstreamAsk): Item[] {
  const items: Item[] = [];
  /** Calls that the engine sees as custom ones, whose results must be so, too. */
  const custom = new Set<string>();
  let thoughts = 0;
  for (const turn of inEngineOrder(turns, ask.instructionsInside)) {
    switch (turn.role) {
      case "assistant":
        for (const part of turn.parts) {
          if (part.kind === "tool-call" && wireOf(part.native)?.type === "custom_tool_call") custom.add(part.callId);
        }
        items.push(...answerItems(turn, () => thoughts++));
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

/** Texts in a row are one message. */
function answerItems({ parts }: AssistantTurn, nextThought: () => number): Item[] {
  const items: Item[] = [];
  let content: JsonObject[] | null = null;
  for (const part of parts) {
    const said = saidPart(part);
    if (said && content) content.push(said);
    else if (said) {
      content = [said];
      items.push({ type: "message", role: "assistant", content });
    } else {
      content = null;
      if (part.kind === "tool-call") items.push(callItem(part));
      if (part.kind === "reasoning") items.push(reasoningItem(part, nextThought));
    }
  }
  return items;
}

function saidPart(part: AssistantPart): JsonObject | null {
  if (part.kind === "text") return { type: "output_text", text: part.text, annotations: [] };
  return part.kind === "refusal" ? { type: "refusal", refusal: part.text } : null;
}

function callItem({ callId, toolName, arguments: written, native }: ToolCallPart): Item {
  const wire = wireOf(native);
  if (wire) return wire;
  // Engines read them as JSON, which nothing is not.
  return { type: "function_call", call_id: callId, name: toolName, arguments: written.trim() === "" ? "{}" : written };
}

/** Proven reasoning as the engine gave it; the text of other reasoning under an id, which some engines ask for. */
function reasoningItem({ text, signature, encrypted }: ReasoningPart, nextThought: () => number): JsonObject {
  const proof = signature ?? encrypted;
  if (proof === undefined)
    return { type: "reasoning", id: `rs_${nextThought()}`, summary: [], content: [{ type: "reasoning_text", text }] };
  return { type: "reasoning", summary: text === "" ? [] : [{ type: "summary_text", text }], encrypted_content: proof };
}

function resultItem({ callId, parts, failed }: ToolTurn, custom: boolean): JsonObject {
  const [first, ...others] = parts;
  const marked: InputPart[] =
    first?.kind === "text"
      ? [{ kind: "text", text: `Error: ${first.text}` }, ...others]
      : [{ kind: "text", text: "Error: " }, ...parts];
  const said = failed ? marked : parts;
  const only = said.length === 1 && said[0]?.kind === "text" ? said[0].text : null;
  return {
    type: custom ? "custom_tool_call_output" : "function_call_output",
    call_id: callId,
    output: only ?? (said.length === 0 ? "" : said.map(inputPart)),
  };
}

/** Sound has no words here, and was refused before (encode-request.ts). */
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
