/**
 * Counts how much of an answer has arrived, and how much of it is kept in memory: docs/design/errors-and-streams.md,
 * Answers that are bounded.
 */
import type { InferenceEvent } from "../inference/event.ts";
import { UnreadableAnswer } from "../protocol/parts-bound.ts";
import { answer_bytes_max, type HoldBytes } from "./engine-json.ts";

/** The most code units in all parts together. It bounds everything that keeps a whole answer. */
const text_max = answer_bytes_max;
/** The memory in bytes that an answer may take if it is not streamed to its caller. */
const kept_bytes_max = 64 * 1024 * 1024;
/** The bytes of memory for each piece beyond its text, and for each token that it may contain. */
const piece_bytes = 48;
const logprob_bytes = 256;

/** The bytes that a request may hold beyond its body without reserving them. */
const free_bytes = 64 * 1024;

/** A `hold` that passes on a size only if it is large, or was before. */
export function whereMuch(hold: HoldBytes): HoldBytes {
  let told_bytes = 0;
  return (bytes) => {
    if (bytes <= free_bytes && told_bytes === 0) return;
    told_bytes = bytes;
    hold(bytes);
  };
}

export class AnswerSize {
  #text = 0;
  /** The bytes that are kept of an answer that is collected. */
  kept_bytes = 0;
  readonly #isCollected: boolean;

  constructor(isCollected: boolean) {
    this.#isCollected = isCollected;
  }

  /** Counts an event. Throws UnreadableAnswer if the answer is too large. */
  take(event: InferenceEvent): void {
    if (event.type !== "part-delta") return;
    const { delta, logprobs } = event;
    this.#text += delta.length;
    if (this.#text > text_max) throw new UnreadableAnswer(`the answer has more than ${text_max} characters`);
    if (!this.#isCollected) return;
    this.kept_bytes += delta.length + piece_bytes;
    for (const { top_logprobs } of logprobs ?? []) this.kept_bytes += logprob_bytes * (1 + top_logprobs.length);
    if (this.kept_bytes > kept_bytes_max)
      throw new UnreadableAnswer(`the answer takes more than ${kept_bytes_max} bytes`);
  }
}
