/**
 * The text of one answer, kept while it runs in case its engine never reports usage: a tokenizer then counts it at the
 * end (docs/design/usage.md, Counting tokens). Of a very long answer, only the beginning is kept, and the count of the
 * beginning is extrapolated.
 */
import type { AnswerPart, InferenceEvent, PartHead } from "../inference/event.ts";

const text_bytes_max = 1024 * 1024;
const step_bytes = 64 * 1024;
/**
 * This many deltas are collected, and joined into one string: as a string of its own, each delta costs more memory than
 * its characters.
 */
const deltas_pending_max = 256;
const bytes_per_code_unit = 2;

class Part {
  #joined = "";
  #pending: string[] = [];

  constructor(
    readonly kind: AnswerPart["kind"],
    readonly toolName: string,
  ) {}

  add(delta: string): void {
    if (this.#pending.push(delta) >= deltas_pending_max) this.#join();
  }

  get text(): string {
    this.#join();
    return this.#joined;
  }

  #join(): void {
    this.#joined = [this.#joined, ...this.#pending].join("");
    this.#pending = [];
  }
}

export class AnswerText {
  readonly #keeps: (bytes: number) => boolean;
  readonly #parts: Part[] = [];
  readonly #open = new Map<number, Part>();
  #reserved_bytes = 0;
  #bytes = 0;
  #isFull = false;
  /** The number of code units of the whole answer, whether kept or not. */
  #codeUnits = 0;

  /** `keeps` reserves memory for this many more bytes, and returns whether there was room. */
  constructor(keeps: (bytes: number) => boolean) {
    this.#keeps = keeps;
  }

  add(event: InferenceEvent): void {
    if (event.type === "part-delta") this.#delta(event.index, event.delta);
    else if (event.type === "part-start") this.#begin(event.index, event.part);
  }

  get parts(): AnswerPart[] {
    return this.#parts.map(({ kind, toolName, text }) => ({ kind, toolName, text }));
  }

  /** The size of the whole answer ÷ that of the kept part; null if nothing was kept. */
  get share(): number | null {
    return this.#bytes === 0 ? null : (this.#codeUnits * bytes_per_code_unit) / this.#bytes;
  }

  #begin(index: number, head: PartHead): void {
    const part = new Part(head.kind, head.kind === "tool-call" ? head.toolName : "");
    this.#open.set(index, part);
    if (!this.#isFull) this.#parts.push(part);
  }

  #delta(index: number, delta: string): void {
    this.#codeUnits += delta.length;
    const part = this.#open.get(index);
    if (this.#isFull || !part) return;
    const bytes = this.#bytes + delta.length * bytes_per_code_unit;
    if (!this.#hasRoom(bytes)) {
      this.#isFull = true;
      return;
    }
    this.#bytes = bytes;
    part.add(delta);
  }

  #hasRoom(bytes: number): boolean {
    if (bytes > text_bytes_max) return false;
    while (bytes > this.#reserved_bytes) {
      if (!this.#keeps(step_bytes)) return false;
      this.#reserved_bytes += step_bytes;
    }
    return true;
  }
}
