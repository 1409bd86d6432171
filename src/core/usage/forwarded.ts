/**
 * How much of one answer was forwarded: its deltas and code units (of UTF-16). Parts that were streamed are counted
 * separately from parts that arrived whole; a part with a single delta counts as whole.
 */
import type { InferenceEvent } from "../inference/event.ts";

/**
 * The scripts of a text, as far as they differ in code units (of UTF-16) per token. `latin` includes Cyrillic, Greek,
 * digits, blanks and code; `cjk` includes kana and hangul. Pure.
 */
export const scripts = ["latin", "cjk", "other"] as const;
export type Script = (typeof scripts)[number];

export type Units = Record<Script, number>;

export function scriptOf(codeUnit: number): Script {
  if (codeUnit < 0x0530 || (codeUnit >= 0x1e00 && codeUnit < 0x2070)) return "latin";
  const isCjk =
    (codeUnit >= 0x2e80 && codeUnit < 0xa000) ||
    (codeUnit >= 0xac00 && codeUnit < 0xd7b0) ||
    (codeUnit >= 0xf900 && codeUnit < 0xfb00) ||
    (codeUnit >= 0xff00 && codeUnit < 0xfff0);
  return isCjk ? "cjk" : "other";
}

/** Adds the code units of a text. Most texts are Latin, which takes one comparison for each unit. */
export function addUnits(units: Units, text: string): void {
  let latin = 0;
  for (let at = 0; at < text.length; at++) {
    const codeUnit = text.charCodeAt(at);
    if (codeUnit < 0x0530) latin += 1;
    else units[scriptOf(codeUnit)] += 1;
  }
  units.latin += latin;
}

export interface Amount extends Units {
  deltas: number;
  /**
   * The deltas that contain a CJK character. Vocabularies cut such characters into several tokens, of which some have
   * no delta of their own.
   */
  cjkDeltas: number;
  otherDeltas: number;
}

/** A part that has not ended. Immutable: a change replaces it. */
interface OpenPart {
  readonly index: number;
  readonly isReasoning: boolean;
  /** The code units of the part's first delta; null before that. */
  readonly first: Units | null;
  /** Whether the part has had a second delta. */
  readonly isStreamed: boolean;
}

export class Forwarded {
  parts = 0;
  reasoningDeltas = 0;
  /** Whether all parts are text: no reasoning, no call. */
  isPlain = true;
  readonly streamed = noAmount();
  readonly whole = noAmount();
  #open: readonly OpenPart[] = [];

  get deltas(): number {
    return this.streamed.deltas + this.whole.deltas;
  }

  get codeUnits(): number {
    return codeUnitsOf(this.streamed) + codeUnitsOf(this.whole);
  }

  get open(): number[] {
    return this.#open.map(({ index }) => index);
  }

  add(event: InferenceEvent): void {
    if (event.type === "part-delta") {
      this.#addDelta(event.index, event.delta);
    } else if (event.type === "part-start") {
      const { kind } = event.part;
      this.parts += 1;
      if (kind === "reasoning" || kind === "tool-call") this.isPlain = false;
      const part = { index: event.index, isReasoning: kind === "reasoning", first: null, isStreamed: false };
      this.#open = [...this.#open, part];
    } else if (event.type === "part-end") {
      this.#open = this.#open.filter(({ index }) => index !== event.index);
    }
  }

  /** Becomes a copy of `other` without making an object: this runs for every batch of every stream. */
  copyFrom(other: Forwarded): void {
    this.parts = other.parts;
    this.reasoningDeltas = other.reasoningDeltas;
    this.isPlain = other.isPlain;
    copy(other.streamed, this.streamed);
    copy(other.whole, this.whole);
    this.#open = other.#open;
  }

  #addDelta(index: number, delta: string): void {
    const position = this.#lastOpen(index);
    const part = this.#open[position];
    if (part?.isReasoning) this.reasoningDeltas += 1;
    if (part?.isStreamed) {
      add(this.streamed, delta);
    } else if (!part || part.first === null) {
      add(this.whole, delta);
      if (part) this.#open = this.#open.with(position, { ...part, first: unitsOf(delta) });
    } else {
      move(part.first, this.whole, this.streamed);
      add(this.streamed, delta);
      this.#open = this.#open.with(position, { ...part, isStreamed: true });
    }
  }

  /** Returns the position, in the list of open parts, of the latest part with this index; -1 if there is none. */
  #lastOpen(index: number): number {
    for (let position = this.#open.length - 1; position >= 0; position--)
      if (this.#open[position]!.index === index) return position;
    return -1;
  }
}

export function codeUnitsOf({ latin, cjk, other }: Units): number {
  return latin + cjk + other;
}

function noAmount(): Amount {
  return { deltas: 0, cjkDeltas: 0, otherDeltas: 0, latin: 0, cjk: 0, other: 0 };
}

function unitsOf(delta: string): Units {
  const units = { latin: 0, cjk: 0, other: 0 };
  addUnits(units, delta);
  return units;
}

function add(amount: Amount, delta: string): void {
  const { cjk, other } = amount;
  addUnits(amount, delta);
  countDelta(amount, { cjk: amount.cjk - cjk, other: amount.other - other }, 1);
}

/** Adds a delta to the count of its script, or subtracts it (`by` is -1). */
function countDelta(amount: Amount, { cjk, other }: Pick<Units, "cjk" | "other">, by: 1 | -1): void {
  amount.deltas += by;
  if (cjk > 0) amount.cjkDeltas += by;
  else if (other > 0) amount.otherDeltas += by;
}

function copy(from: Amount, to: Amount): void {
  to.deltas = from.deltas;
  to.cjkDeltas = from.cjkDeltas;
  to.otherDeltas = from.otherDeltas;
  to.latin = from.latin;
  to.cjk = from.cjk;
  to.other = from.other;
}

/** Moves a part's only delta, which has these units, from the count `from` to the count `to`. */
function move(units: Units, from: Amount, to: Amount): void {
  countDelta(from, units, -1);
  countDelta(to, units, 1);
  for (const script of scripts) {
    from[script] -= units[script];
    to[script] += units[script];
  }
}
