/**
 * Turns the items of an engine's answer into parts. Engines give items numbers and ids, and make mistakes in either, so
 * both are used to distinguish items. A `response.output_item.added` event always begins a new item. Content that
 * arrives only in the event that ends its item, or the answer, is written at that event. llama.cpp ends all its items
 * only with the answer, so a text or reasoning part ends when another part begins. Items of an unknown type are
 * skipped.
 */
import type { InferenceEvent, PartHead, TokenLogprob } from "../../inference/event.ts";
import { assertFewParts } from "../answer.ts";
import { CallIds } from "../call-ids.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";
import { logprobsOf } from "../openai-usage.ts";

interface Part {
  index: number;
  kind: PartHead["kind"];
  written: boolean;
  ended: boolean;
  /** Set if another part has ended this one. If the engine sends more of this part, the rest becomes a new part. */
  overtaken?: true;
}

interface Item {
  type: string;
  id: string;
  /** The parts by content index. A call or a reasoning item has one part, at 0. */
  parts: Map<number, Part>;
  /** The form in which the engine's reasoning is read: its text or its summary. Some engines send both. */
  source: "content" | "summary" | null;
  summaries: number;
  done: boolean;
}

export class AnswerParts {
  calls = 0;
  /** Whether some call has no name, so that the client could not run it. */
  unnamed = false;
  readonly #items: Item[] = [];
  /** The open text or reasoning part. There is at most one. */
  #open: Part | null = null;
  readonly #byIndex = new Map<number, Item>();
  readonly #ids: CallIds;
  #count = 0;

  constructor(responseId: string) {
    this.#ids = new CallIds(`call_${responseId.slice(-32)}`);
  }

  /** Whether the answer has parts and none of them is a tool call, which could have been cut short. */
  get areSaid(): boolean {
    return this.#count > 0 && this.calls === 0;
  }

  begin(event: JsonObject): InferenceEvent[] {
    if (!isObject(event.item)) return [];
    const events = this.#endAt(event.output_index);
    const item = this.#newItem(event.item, event.output_index);
    return isCall(item) ? [...events, ...this.#beginCall(item, event.item)] : events;
  }

  /** Takes one piece of a part. A blank line separates the parts of a summary. */
  delta(event: JsonObject, kind: PartHead["kind"], piece: unknown): InferenceEvent[] {
    const item = this.#find(event) ?? this.#implied(event, kind);
    const delta = textOf(piece);
    if (!item || item.done || kindsOf.get(item.type)?.includes(kind) !== true) return [];
    const logprobs = kind === "text" ? logprobsOf(event.logprobs) : [];
    if (kind === "reasoning") return this.#think(item, event, delta);
    if (delta === "" && logprobs.length === 0) return [];
    return this.#write(item, isCall(item) ? 0 : countAt(event.content_index), kind, delta, logprobs);
  }

  /** Takes the whole content of a part, which engines send at the part's end. It is used if no pieces came. */
  whole(event: JsonObject, kind: PartHead["kind"], text: unknown): InferenceEvent[] {
    const item = this.#find(event);
    const part = item?.parts.get(isCall(item) || kind === "reasoning" ? 0 : countAt(event.content_index));
    return part?.written ? [] : this.delta(event, kind, text);
  }

  partDone(event: JsonObject): InferenceEvent[] {
    const item = this.#find(event);
    if (item?.type !== "message") return [];
    const part = item.parts.get(countAt(event.content_index));
    return part ? this.#endPart(part) : [];
  }

  done(event: JsonObject): InferenceEvent[] {
    if (!isObject(event.item)) return [];
    const item = this.#find({ ...event, item_id: event.item.id }) ?? this.#newItem(event.item, event.output_index);
    return this.#finish(item, event.item);
  }

  /**
   * Takes the output of the final object: adds items that were never sent, and ends the open ones. The final ids may
   * differ from those of the stream; the order is the same.
   */
  final(output: unknown): InferenceEvent[] {
    const events: InferenceEvent[] = [];
    const unmatched = [...this.#items];
    for (const [at, value] of (Array.isArray(output) ? output : []).entries()) {
      if (!isObject(value)) continue;
      const type = textOf(value.type);
      const byId = unmatched.findIndex((item) => item.id !== "" && item.id === value.id);
      const place = byId === -1 ? unmatched.findIndex((item) => item.type === type) : byId;
      const item = place === -1 ? this.#newItem(value, at) : unmatched.splice(place, 1)[0];
      if (item?.type === type) events.push(...this.#finish(item, value));
    }
    for (const item of this.#items) events.push(...this.#endParts(item));
    return events;
  }

  // ---- items ---------------------------------------------------------------------------------------------------------

  #newItem(value: JsonObject, index: unknown): Item {
    const item: Item = {
      type: textOf(value.type),
      id: textOf(value.id),
      parts: new Map(),
      source: null,
      summaries: 0,
      done: false,
    };
    this.#items.push(item);
    assertFewParts(this.#items.length);
    this.#byIndex.set(Number.isInteger(index) ? Number(index) : this.#items.length - 1, item);
    return item;
  }

  /**
   * The item to which an event belongs: the latest item with the event's number. If the event has no number: the latest
   * item with the event's id, or else the last item.
   */
  #find(event: JsonObject): Item | undefined {
    if (Number.isInteger(event.output_index)) return this.#byIndex.get(Number(event.output_index));
    return this.#byId(textOf(event.item_id)) ?? this.#items.at(-1);
  }

  #byId(id: string): Item | undefined {
    return id === "" ? undefined : this.#items.findLast((item) => item.id === id);
  }

  /**
   * Makes a new item, for engines that send content without having begun an item. None is made for a call, because only
   * the event that begins a call has its name.
   */
  #implied(event: JsonObject, kind: PartHead["kind"]): Item | undefined {
    if (kind === "tool-call") return undefined;
    return this.#newItem(
      { type: kind === "reasoning" ? "reasoning" : "message", id: event.item_id },
      event.output_index,
    );
  }

  /** Ends the item with this number, because the number is now given to another item. */
  #endAt(index: unknown): InferenceEvent[] {
    const before = Number.isInteger(index) ? this.#byIndex.get(Number(index)) : undefined;
    if (!before) return [];
    before.done = true;
    return this.#endParts(before);
  }

  #finish(item: Item, value: JsonObject): InferenceEvent[] {
    if (item.done) return [];
    const events: InferenceEvent[] = [];
    if (isCall(item)) {
      if (!item.parts.has(0)) events.push(...this.#beginCall(item, value));
      // Some engines write no arguments for a tool without parameters. Clients parse the arguments as JSON.
      const none = item.type === "function_call" && value.status !== "incomplete" ? "{}" : "";
      if (item.parts.get(0)?.written === false)
        events.push(...this.#write(item, 0, "tool-call", textOf(value.arguments) || textOf(value.input) || none));
    } else if (item.type === "reasoning") events.push(...this.#finishReasoning(item, value));
    else if (item.type === "message") events.push(...this.#finishMessage(item, value));
    item.done = true;
    return [...events, ...this.#endParts(item)];
  }

  #finishMessage(item: Item, value: JsonObject): InferenceEvent[] {
    const content = Array.isArray(value.content) ? value.content : [];
    return content.flatMap((part, at): InferenceEvent[] => {
      if (!isObject(part) || item.parts.get(at)) return [];
      if (part.type === "refusal") return this.#write(item, at, "refusal", textOf(part.refusal));
      return part.type === "output_text"
        ? this.#write(item, at, "text", textOf(part.text), logprobsOf(part.logprobs))
        : [];
    });
  }

  /**
   * Ends a reasoning item. Its `encrypted_content` is the engine's proof of the reasoning. With a text, the proof
   * becomes the text's signature; without a text, it becomes a part of encrypted reasoning.
   */
  #finishReasoning(item: Item, value: JsonObject): InferenceEvent[] {
    const proof = textOf(value.encrypted_content) || undefined;
    const text = item.parts.has(0) ? "" : joinedText(value.content, "") || joinedText(value.summary, "\n\n");
    const events = this.#write(item, 0, "reasoning", text);
    const part = item.parts.get(0);
    if (part) return [...events, ...this.#endPart(part, proof)];
    if (proof === undefined) return events;
    const overtaken = this.#overtake();
    const index = this.#newIndex();
    item.parts.set(0, { index, kind: "reasoning", written: true, ended: true });
    return [
      ...overtaken,
      { type: "part-start", index, part: { kind: "reasoning", encrypted: proof } },
      { type: "part-end", index },
    ];
  }

  // ---- parts ---------------------------------------------------------------------------------------------------------

  #beginCall(item: Item, value: JsonObject): InferenceEvent[] {
    const toolName = textOf(value.name).toWellFormed();
    if (toolName === "") {
      this.unnamed = true;
      return [];
    }
    this.calls += 1;
    const namespace = textOf(value.namespace);
    const overtaken = this.#overtake();
    const index = this.#newIndex();
    item.parts.set(0, { index, kind: "tool-call", written: false, ended: false });
    const head: PartHead = {
      kind: "tool-call",
      callId: this.#ids.unique(textOf(value.call_id)),
      toolName,
      ...(namespace === "" ? {} : { namespace }),
      ...(item.type === "custom_tool_call" ? { custom: true } : {}),
    };
    return [...overtaken, { type: "part-start", index, part: head }];
  }

  #newIndex(): number {
    assertFewParts(this.#count + 1);
    return this.#count++;
  }

  #overtake(): InferenceEvent[] {
    const part = this.#open;
    if (!part) return [];
    part.overtaken = true;
    return this.#endPart(part);
  }

  #think(item: Item, event: JsonObject, delta: string): InferenceEvent[] {
    const isSummary = textOf(event.type).includes("summary");
    const source = isSummary ? "summary" : "content";
    if (delta === "" || (item.source !== null && item.source !== source)) return [];
    item.source = source;
    const at = isSummary ? countAt(event.summary_index) : 0;
    const gap = at > item.summaries ? "\n\n" : "";
    item.summaries = Math.max(item.summaries, at);
    return this.#write(item, 0, "reasoning", gap + delta);
  }

  #write(
    item: Item,
    at: number,
    kind: PartHead["kind"],
    delta: string,
    logprobs: TokenLogprob[] = [],
  ): InferenceEvent[] {
    let part = item.parts.get(at);
    if (part && (part.kind !== kind || (part.ended && !part.overtaken))) return [];
    if (delta === "" && (logprobs.length === 0 || !part)) return [];
    const events: InferenceEvent[] = [];
    if (!part || part.overtaken) {
      if (kind === "tool-call") return [];
      events.push(...this.#overtake());
      part = { index: this.#newIndex(), kind, written: false, ended: false };
      item.parts.set(at, part);
      this.#open = part;
      events.push({ type: "part-start", index: part.index, part: { kind } });
    }
    part.written = true;
    events.push({ type: "part-delta", index: part.index, delta, ...(logprobs.length > 0 ? { logprobs } : {}) });
    return events;
  }

  #endParts(item: Item): InferenceEvent[] {
    return [...item.parts.values()].flatMap((part) => this.#endPart(part));
  }

  #endPart(part: Part, signature?: string): InferenceEvent[] {
    if (part.ended) return [];
    part.ended = true;
    if (this.#open === part) this.#open = null;
    return [{ type: "part-end", index: part.index, ...(signature === undefined ? {} : { signature }) }];
  }
}

const kindsOf: ReadonlyMap<string, readonly PartHead["kind"][]> = new Map([
  ["message", ["text", "refusal"]],
  ["reasoning", ["reasoning"]],
  ["function_call", ["tool-call"]],
  ["custom_tool_call", ["tool-call"]],
]);

function isCall(item: Pick<Item, "type"> | undefined): boolean {
  return item?.type === "function_call" || item?.type === "custom_tool_call";
}

function countAt(value: unknown): number {
  return Number.isInteger(value) && Number(value) >= 0 ? Number(value) : 0;
}

function joinedText(parts: unknown, between: string): string {
  if (!Array.isArray(parts)) return "";
  return parts.map((part) => (isObject(part) ? textOf(part.text) : "")).join(between);
}
