/**
 * The part of one answer that was forwarded: its deltas and code units (of UTF-16). Parts that were streamed are
 * counted separately from parts that arrived whole; a part counts as whole as long as it has one delta.
 */
import type { InferenceEvent } from "../inference/event.ts";
import { addUnits, scripts, type Units } from "./script.ts";

export interface Amount extends Units {
  deltas: number;
}

/** A part that has begun and not ended. It is immutable: a change replaces it. */
interface OpenPart {
  readonly index: number;
  readonly isReasoning: boolean;
  /** The code units of its first delta; null before that. */
  readonly first: Units | null;
  /** Whether it has had a second delta. */
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

  /** The indexes of the parts that have begun and not ended. */
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

  /** Copies `other` without a new object: this runs for every batch of every stream. */
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

  /** The position of the open part with this index that began last; -1 if there is none. */
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
  return { deltas: 0, latin: 0, cjk: 0, other: 0 };
}

function unitsOf(delta: string): Units {
  const units = { latin: 0, cjk: 0, other: 0 };
  addUnits(units, delta);
  return units;
}

function add(amount: Amount, delta: string): void {
  amount.deltas += 1;
  addUnits(amount, delta);
}

function copy(from: Amount, to: Amount): void {
  to.deltas = from.deltas;
  for (const script of scripts) to[script] = from[script];
}

/** Moves the one delta that has these units. */
function move(units: Units, from: Amount, to: Amount): void {
  from.deltas -= 1;
  to.deltas += 1;
  for (const script of scripts) {
    from[script] -= units[script];
    to[script] += units[script];
  }
}
