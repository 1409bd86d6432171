/**
 * Turns the blocks of an engine's answer into parts. Blocks have an `index`, but some engines leave it out, begin a
 * block twice, forget to begin or to end a block, or put all of a block into its start event. Blocks of an unknown type
 * are skipped. Some engines end all blocks only with the answer, so a text or reasoning part ends when another part
 * begins.
 */
import type { InferenceEvent, PartHead } from "../../inference/event.ts";
import type { Native } from "../../inference/request.ts";
import { assertFewParts } from "../answer.ts";
import { CallIds } from "../call-ids.ts";
import { entryOf, isObject, type JsonObject, textOf } from "../json.ts";
import { asCitation } from "./native.ts";
import { signatureOf } from "./signature.ts";

interface Part {
  kind: PartHead["kind"];
  /**
   * The index of the part. It is null before the part begins with its first text, and again after another part has
   * ended it.
   */
  index: number | null;
  written: boolean;
  /** The arguments of a tool call in the start event of its block, for engines that send no fragments. */
  input: JsonObject;
  signature: string | undefined;
  citations: Native[];
}

export class AnswerParts {
  calls = 0;
  /** The open parts by the engine's index; null for a block that is skipped. */
  readonly #open = new Map<number, Part | null>();
  readonly #ids: CallIds;
  #latest = 0;
  #highest = -1;
  #count = 0;

  constructor(responseId: string) {
    this.#ids = new CallIds(`toolu_${responseId.slice(-32)}`);
  }

  /**
   * Whether the answer has content and no tool calls. Such an answer may be complete even without a stop reason; a call
   * without one could be cut off.
   */
  get areSaid(): boolean {
    return this.#count > 0 && this.calls === 0;
  }

  /** Begins a block. A block without an index is a new one. */
  open(wireIndex: unknown, block: unknown): InferenceEvent[] {
    const index = Number.isInteger(wireIndex) ? Number(wireIndex) : this.#highest + 1;
    const events = this.close(index);
    this.#latest = index;
    this.#highest = Math.max(this.#highest, index);
    const value = isObject(block) ? block : {};
    const part = newPart(value);
    this.#open.set(index, part);
    assertFewParts(this.#open.size);
    return part ? [...events, ...this.#begun(part, value)] : events;
  }

  delta(wireIndex: unknown, value: unknown): InferenceEvent[] {
    const index = this.#at(wireIndex);
    const kind = isObject(value) ? entryOf(kindOfDelta, textOf(value.type)) : undefined;
    if (!isObject(value) || !kind || this.#open.get(index) === null) return [];
    const part = this.#open.get(index);
    if (part?.kind === kind) return this.#grown(part, value);
    // Text that belongs to no block, or to a block of another kind, becomes a block of its own.
    if (kind === "tool-call") return [];
    const head = this.open(index, { type: kind === "text" ? "text" : "thinking" });
    return [...head, ...this.delta(index, value)];
  }

  close(wireIndex: unknown): InferenceEvent[] {
    const index = this.#at(wireIndex);
    const part = this.#open.get(index);
    this.#open.delete(index);
    if (!part) return [];
    const last = part.kind === "tool-call" && !part.written ? this.#write(part, JSON.stringify(part.input)) : [];
    return [...last, ...this.#end(part)];
  }

  closeAll(): InferenceEvent[] {
    return [...this.#open.keys()].flatMap((index) => this.close(index));
  }

  /** The block's index, or the index of the latest block if the engine left it out. */
  #at(index: unknown): number {
    return Number.isInteger(index) ? Number(index) : this.#latest;
  }

  /** The events for the content in the start event of a block. */
  #begun(part: Part, block: JsonObject): InferenceEvent[] {
    switch (part.kind) {
      case "reasoning": {
        const encrypted = block.type === "redacted_thinking" ? { encrypted: textOf(block.data) } : {};
        return [
          ...this.#begin(part, { kind: "reasoning", ...encrypted }),
          ...this.#write(part, textOf(block.thinking)),
        ];
      }
      case "tool-call": {
        this.calls += 1;
        const callId = this.#ids.unique(textOf(block.id));
        return this.#begin(part, { kind: "tool-call", callId, toolName: textOf(block.name).toWellFormed() });
      }
      default:
        return this.#write(part, textOf(block.text));
    }
  }

  #grown(part: Part, delta: JsonObject): InferenceEvent[] {
    switch (delta.type) {
      case "text_delta":
        return this.#write(part, textOf(delta.text));
      case "thinking_delta":
        return this.#write(part, textOf(delta.thinking));
      case "input_json_delta":
        return this.#write(part, textOf(delta.partial_json));
      case "signature_delta":
        part.signature = textOf(delta.signature);
        return [];
      default:
        if (isObject(delta.citation)) part.citations.push(asCitation(delta.citation));
        return [];
    }
  }

  #begin(part: Part, head: PartHead): InferenceEvent[] {
    const events = this.#overtake();
    part.index = this.#count++;
    assertFewParts(this.#count);
    return [...events, { type: "part-start", index: part.index, part: head }];
  }

  #overtake(): InferenceEvent[] {
    return [...this.#open.values()].flatMap((part) => (part && part.kind !== "tool-call" ? this.#end(part) : []));
  }

  #end(part: Part): InferenceEvent[] {
    const { index, citations } = part;
    if (index === null) return [];
    const signature = part.kind === "reasoning" ? signatureOf(part.signature) : undefined;
    // If the block continues, it gets a new part, with its own signature and citations.
    Object.assign(part, { index: null, signature: undefined, citations: [] });
    return [
      {
        type: "part-end",
        index,
        ...(signature === undefined ? {} : { signature }),
        ...(citations.length === 0 ? {} : { citations }),
      },
    ];
  }

  #write(part: Part, delta: string): InferenceEvent[] {
    if (delta === "") return [];
    const head =
      part.index === null ? this.#begin(part, { kind: part.kind === "reasoning" ? "reasoning" : "text" }) : [];
    part.written = true;
    return [...head, { type: "part-delta", index: part.index ?? 0, delta }];
  }
}

const kindOfDelta: Partial<Record<string, PartHead["kind"]>> = {
  text_delta: "text",
  citations_delta: "text",
  thinking_delta: "reasoning",
  signature_delta: "reasoning",
  input_json_delta: "tool-call",
};

function newPart(block: JsonObject): Part | null {
  const kind = entryOf(kindOfBlock, textOf(block.type));
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
