/**
 * Reads an engine's answer that is passed on. The answer is held back until it is known to be valid, or until it is
 * large; once a part was passed on, no other engine can be asked. Pure.
 */
import type { InferenceEvent } from "../../core/inference/event.ts";
import { type AnswerReader, type ResponseIdentity, UnreadableAnswer } from "../../core/protocol/codec.ts";
import { beginningOf } from "./choices.ts";
import type { Checking } from "./passing.ts";
import { type LeftOut, Sieve } from "./sieve.ts";

/** The most bytes that are held back. A larger answer is passed on before it is complete. */
export const held_bytes_max = 1024 * 1024;
/** The most bytes that are read from the engine at a time. */
const read_bytes = 256 * 1024;

export interface AnswerReading {
  identity: ResponseIdentity;
  checking: Checking;
  answer_bytes_max: number;
  leftOut: LeftOut;
}

export class PassedReader implements AnswerReader {
  readonly #reading: AnswerReading;
  readonly #sieve: Sieve;
  #bytes = 0;
  #isBegun = false;

  constructor(reading: AnswerReading) {
    this.#reading = reading;
    this.#sieve = new Sieve(reading.checking, reading.leftOut);
  }

  get held_bytes(): number {
    return this.#sieve.held_bytes;
  }

  get next_bytes(): number {
    return read_bytes;
  }

  push(pieces: readonly Uint8Array[]): InferenceEvent[] {
    const { answer_bytes_max, checking } = this.#reading;
    for (const piece of pieces) {
      this.#bytes += piece.byteLength;
      if (this.#bytes > answer_bytes_max)
        throw new UnreadableAnswer(`the answer is larger than ${answer_bytes_max} bytes`);
      this.#sieve.push(piece);
    }
    // A text is held back until it has been counted.
    const isHeld = checking.written !== undefined || (!this.#isBegun && this.#sieve.bytes < held_bytes_max);
    return isHeld || this.#sieve.bytes === 0 ? [] : [...this.#beginning(), this.#passed()];
  }

  end(): InferenceEvent[] {
    const { checking } = this.#reading;
    this.#sieve.end();
    checking.complete(this.#sieve.items);
    const report = checking.report(this.#sieve.members);
    const { text = "", reason = "stop" } = checking.written?.() ?? {};
    return [
      ...this.#beginning(),
      ...(text === "" ? [] : [{ type: "part-delta", index: 0, delta: text } as const]),
      ...(this.#sieve.bytes > 0 ? [this.#passed()] : []),
      { type: "part-end", index: 0 },
      ...(report ? [{ type: "usage", ...report } as const] : []),
      { type: "response-end", reason },
    ];
  }

  #beginning(): InferenceEvent[] {
    if (this.#isBegun) return [];
    this.#isBegun = true;
    return beginningOf(this.#reading.identity);
  }

  #passed(): InferenceEvent {
    return { type: "passed", bytes: this.#sieve.take() };
  }
}
