/**
 * What of one answer was forwarded: deltas and letters, those of parts that were streamed apart from those of parts that
 * came whole. A part is whole as long as it came in one delta.
 */
import type { InferenceEvent } from "../inference/event.ts";

/** Letters are UTF-16 units. */
export interface Amount {
  deltas: number;
  letters: number;
}

interface Part {
  index: number;
  isReasoning: boolean;
  deltas: number;
  letters: number;
}

export class Forwarded {
  parts = 0;
  reasoningDeltas = 0;
  readonly streamed: Amount = { deltas: 0, letters: 0 };
  readonly whole: Amount = { deltas: 0, letters: 0 };
  #open: Part[] = [];

  get deltas(): number {
    return this.streamed.deltas + this.whole.deltas;
  }

  get letters(): number {
    return this.streamed.letters + this.whole.letters;
  }

  /** Of the parts that have begun and not ended. */
  get open(): number[] {
    return this.#open.map(({ index }) => index);
  }

  add(event: InferenceEvent): void {
    if (event.type === "part-delta") {
      this.#delta(event.index, event.delta.length);
    } else if (event.type === "part-start") {
      this.parts += 1;
      this.#open.push({ index: event.index, isReasoning: event.part.kind === "reasoning", deltas: 0, letters: 0 });
    } else if (event.type === "part-end") {
      this.#open = this.#open.filter(({ index }) => index !== event.index);
    }
  }

  copy(): Forwarded {
    const copy = new Forwarded();
    copy.parts = this.parts;
    copy.reasoningDeltas = this.reasoningDeltas;
    Object.assign(copy.streamed, this.streamed);
    Object.assign(copy.whole, this.whole);
    copy.#open = this.#open.map((part) => ({ ...part }));
    return copy;
  }

  #delta(index: number, letters: number): void {
    const part = this.#open.findLast((open) => open.index === index);
    if (part?.isReasoning) this.reasoningDeltas += 1;
    if (!part || part.deltas === 0) {
      this.whole.deltas += 1;
      this.whole.letters += letters;
    } else {
      this.streamed.deltas += 1;
      this.streamed.letters += letters;
    }
    if (!part) return;
    if (part.deltas === 1) {
      this.whole.deltas -= 1;
      this.whole.letters -= part.letters;
      this.streamed.deltas += 1;
      this.streamed.letters += part.letters;
    }
    part.deltas += 1;
    part.letters += letters;
  }
}
