/**
 * What of one answer was forwarded: deltas and code units, those of parts that were streamed apart from those of parts that
 * came whole. A part is whole as long as it came in one delta.
 */
import type { InferenceEvent } from "../inference/event.ts";

/** Code units are of UTF-16. */
export interface Amount {
  deltas: number;
  codeUnits: number;
}

interface Part {
  index: number;
  isReasoning: boolean;
  deltas: number;
  codeUnits: number;
}

export class Forwarded {
  parts = 0;
  reasoningDeltas = 0;
  streamed: Amount = { deltas: 0, codeUnits: 0 };
  whole: Amount = { deltas: 0, codeUnits: 0 };
  #open: Part[] = [];

  get deltas(): number {
    return this.streamed.deltas + this.whole.deltas;
  }

  get codeUnits(): number {
    return this.streamed.codeUnits + this.whole.codeUnits;
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
      this.#open.push({ index: event.index, isReasoning: event.part.kind === "reasoning", deltas: 0, codeUnits: 0 });
    } else if (event.type === "part-end") {
      this.#end(event.index);
    }
  }

  copy(): Forwarded {
    const copy = new Forwarded();
    copy.parts = this.parts;
    copy.reasoningDeltas = this.reasoningDeltas;
    copy.streamed = { deltas: this.streamed.deltas, codeUnits: this.streamed.codeUnits };
    copy.whole = { deltas: this.whole.deltas, codeUnits: this.whole.codeUnits };
    for (const { index, isReasoning, deltas, codeUnits } of this.#open)
      copy.#open.push({ index, isReasoning, deltas, codeUnits });
    return copy;
  }

  #end(ended: number): void {
    this.#open = this.#open.filter(({ index }) => index !== ended);
  }

  /** The last that began. */
  #openPart(index: number): Part | undefined {
    for (let at = this.#open.length - 1; at >= 0; at--) if (this.#open[at]!.index === index) return this.#open[at];
    return undefined;
  }

  #delta(index: number, codeUnits: number): void {
    const part = this.#openPart(index);
    if (part?.isReasoning) this.reasoningDeltas += 1;
    if (!part || part.deltas === 0) {
      this.whole.deltas += 1;
      this.whole.codeUnits += codeUnits;
    } else {
      this.streamed.deltas += 1;
      this.streamed.codeUnits += codeUnits;
    }
    if (!part) return;
    if (part.deltas === 1) {
      this.whole.deltas -= 1;
      this.whole.codeUnits -= part.codeUnits;
      this.streamed.deltas += 1;
      this.streamed.codeUnits += part.codeUnits;
    }
    part.deltas += 1;
    part.codeUnits += codeUnits;
  }
}
