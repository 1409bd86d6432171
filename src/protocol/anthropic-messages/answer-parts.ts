/**
 * The blocks of an engine's answer → parts. `index` tells blocks apart; engines leave it out, begin a block twice, forget
 * to begin or to end one, and put the whole of it into its beginning. Blocks of an unknown type are passed over whole.
 */
import type { InferenceEvent, PartHead } from "../../inference/event.ts";
import type { Native } from "../../inference/request.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";
import { asCitation } from "./citations.ts";
import { signatureOf } from "./signature.ts";

interface Part {
  kind: PartHead["kind"];
  /** Of the part; null while it has not begun, because an empty text never does. */
  index: number | null;
  written: boolean;
  /** A tool's arguments as its beginning gave them, for engines that send no fragments. */
  input: JsonObject;
  signature: string | undefined;
  citations: Native[];
}

export function answerParts(responseId: string) {
  /** By the engine's index. Null is a block that is passed over. */
  const open = new Map<number, Part | null>();
  const usedIds = new Set<string>();
  let latest = 0;
  let count = 0;
  let calls = 0;

  /** Without an index it is the latest block that is meant. */
  const at = (index: unknown) => (Number.isInteger(index) ? Number(index) : latest);

  function uniqueId(said: string): string {
    const base = said || `toolu_${responseId.slice(-32)}`;
    let id = said || `${base}_0`;
    for (let ordinal = 1; usedIds.has(id); ordinal += 1) id = `${base}_${ordinal}`;
    usedIds.add(id);
    return id;
  }

  function begin(part: Part, head: PartHead): InferenceEvent[] {
    part.index = count++;
    return [{ type: "part-start", index: part.index, part: head }];
  }

  function write(part: Part, delta: string): InferenceEvent[] {
    if (delta === "") return [];
    const head = part.index === null ? begin(part, { kind: "text" }) : [];
    part.written = true;
    return [...head, { type: "part-delta", index: part.index!, delta }];
  }

  function openBlock(said: unknown, block: unknown): InferenceEvent[] {
    // A beginning without an index is that of a new block.
    const index = Number.isInteger(said)
      ? Number(said)
      : open.size === 0
        ? latest
        : Math.max(latest, ...open.keys()) + 1;
    const events = close(index);
    latest = index;
    const value = isObject(block) ? block : {};
    const part = newPart(value);
    open.set(index, part);
    if (!part) return events;
    switch (part.kind) {
      case "reasoning": {
        const encrypted = value.type === "redacted_thinking" ? { encrypted: textOf(value.data) } : {};
        events.push(...begin(part, { kind: "reasoning", ...encrypted }), ...write(part, textOf(value.thinking)));
        return events;
      }
      case "tool-call":
        calls += 1;
        events.push(
          ...begin(part, { kind: "tool-call", callId: uniqueId(textOf(value.id)), toolName: textOf(value.name) }),
        );
        return events;
      default:
        events.push(...write(part, textOf(value.text)));
        return events;
    }
  }

  function delta(said: unknown, value: unknown): InferenceEvent[] {
    if (!isObject(value)) return [];
    const index = at(said);
    if (open.get(index) === null) return [];
    const kind = kindOfDelta[textOf(value.type)];
    if (!kind) return [];
    const part = open.get(index);
    // A text that was never begun, or stands in a block of another kind, is a block of its own.
    if (part?.kind !== kind) {
      if (kind === "tool-call") return [];
      const block = kind === "text" ? { type: "text" } : { type: "thinking" };
      return [...openBlock(index, block), ...delta(index, value)];
    }
    switch (value.type) {
      case "text_delta":
        return write(part, textOf(value.text));
      case "thinking_delta":
        return write(part, textOf(value.thinking));
      case "input_json_delta":
        return write(part, textOf(value.partial_json));
      case "signature_delta":
        part.signature = textOf(value.signature);
        return [];
      default:
        if (isObject(value.citation)) part.citations.push(asCitation(value.citation));
        return [];
    }
  }

  function close(said: unknown): InferenceEvent[] {
    const index = at(said);
    const part = open.get(index);
    open.delete(index);
    if (!part) return [];
    const last = part.kind === "tool-call" && !part.written ? write(part, JSON.stringify(part.input)) : [];
    if (part.index === null) return last;
    const signature = part.kind === "reasoning" ? signatureOf(part.signature) : undefined;
    return [
      ...last,
      {
        type: "part-end",
        index: part.index,
        ...(signature === undefined ? {} : { signature }),
        ...(part.citations.length === 0 ? {} : { citations: part.citations }),
      },
    ];
  }

  return {
    get calls() {
      return calls;
    },
    open: openBlock,
    delta,
    close,
    closeAll: (): InferenceEvent[] => [...open.keys()].flatMap(close),
  };
}

const kindOfDelta: Partial<Record<string, PartHead["kind"]>> = {
  text_delta: "text",
  citations_delta: "text",
  thinking_delta: "reasoning",
  signature_delta: "reasoning",
  input_json_delta: "tool-call",
};

function newPart(block: JsonObject): Part | null {
  const kind = kindOfBlock[textOf(block.type)];
  if (!kind) return null;
  const citations = Array.isArray(block.citations) ? block.citations.filter(isObject).map(asCitation) : [];
  return {
    kind,
    index: null,
    written: false,
    input: isObject(block.input) ? block.input : {},
    signature: typeof block.signature === "string" ? block.signature : undefined,
    citations,
  };
}

const kindOfBlock: Partial<Record<string, PartHead["kind"]>> = {
  text: "text",
  thinking: "reasoning",
  redacted_thinking: "reasoning",
  tool_use: "tool-call",
};
