/**
 * Counts how much of an answer has arrived, and how much of it is kept: docs/design/errors-and-streams.md, Answers that
 * are bounded.
 */
import type { InferenceEvent } from "../inference/event.ts";
import { UnreadableAnswer } from "../protocol/parts-bound.ts";
import { answer_bytes_max, type HoldBytes } from "./engine-json.ts";

/** The code units of all parts together. Everything that keeps a whole answer is bounded by it. */
const text_max = answer_bytes_max;
/** The memory in bytes that an answer may take if its caller does not stream it. */
const kept_bytes_max = 64 * 1024 * 1024;
/** The bytes that each piece takes beside its text, and each token that may have been in it. */
const piece_bytes = 48;
const logprob_bytes = 256;

/** The allowance of a request for everything that it holds beside its body. */
const free_bytes = 64 * 1024;

/** Reports the size if it is large, or was. */
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
  /** Bytes that are kept of an answer that is collected. */
  kept_bytes = 0;
  readonly #isCollected: boolean;

  constructor(isCollected: boolean) {
    this.#isCollected = isCollected;
  }

  /** Throws UnreadableAnswer. */
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
