/**
 * The part of one answer that was forwarded: its deltas and code units (of UTF-16). Parts that were streamed are
 * counted separately from parts that arrived whole; a part counts as whole as long as it has one delta.
 */
import type { InferenceEvent } from "../inference/event.ts";

export interface Amount {
  deltas: number;
  codeUnits: number;
}

/** A part that has begun and not ended. It is immutable: a change replaces it. */
interface OpenPart {
  readonly index: number;
  readonly isReasoning: boolean;
  /** The code units of its first delta; null before that. */
  readonly first_codeUnits: number | null;
  /** Whether it has had a second delta. */
  readonly isStreamed: boolean;
}

export class Forwarded {
  parts = 0;
  reasoningDeltas = 0;
  readonly streamed: Amount = { deltas: 0, codeUnits: 0 };
  readonly whole: Amount = { deltas: 0, codeUnits: 0 };
  #open: readonly OpenPart[] = [];

  get deltas(): number {
    return this.streamed.deltas + this.whole.deltas;
  }

  get codeUnits(): number {
    return this.streamed.codeUnits + this.whole.codeUnits;
  }

  /** The indexes of the parts that have begun and not ended. */
  get open(): number[] {
    return this.#open.map(({ index }) => index);
  }

  add(event: InferenceEvent): void {
    if (event.type === "part-delta") {
      this.#addDelta(event.index, event.delta.length);
    } else if (event.type === "part-start") {
      const isReasoning = event.part.kind === "reasoning";
      this.parts += 1;
      this.#open = [...this.#open, { index: event.index, isReasoning, first_codeUnits: null, isStreamed: false }];
    } else if (event.type === "part-end") {
      this.#open = this.#open.filter(({ index }) => index !== event.index);
    }
  }

  /** Copies `other` without a new object: this runs for every batch of every stream. */
  copyFrom(other: Forwarded): void {
    this.parts = other.parts;
    this.reasoningDeltas = other.reasoningDeltas;
    this.streamed.deltas = other.streamed.deltas;
    this.streamed.codeUnits = other.streamed.codeUnits;
    this.whole.deltas = other.whole.deltas;
    this.whole.codeUnits = other.whole.codeUnits;
    this.#open = other.#open;
  }

  #addDelta(index: number, codeUnits: number): void {
    const position = this.#lastOpen(index);
    const part = this.#open[position];
    if (part?.isReasoning) this.reasoningDeltas += 1;
    if (part?.isStreamed) {
      add(this.streamed, 1, codeUnits);
    } else if (!part || part.first_codeUnits === null) {
      add(this.whole, 1, codeUnits);
      if (part) this.#open = this.#open.with(position, { ...part, first_codeUnits: codeUnits });
    } else {
      add(this.whole, -1, -part.first_codeUnits);
      add(this.streamed, 2, part.first_codeUnits + codeUnits);
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

function add(amount: Amount, deltas: number, codeUnits: number): void {
  amount.deltas += deltas;
  amount.codeUnits += codeUnits;
}
