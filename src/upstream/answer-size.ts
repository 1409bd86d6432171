/** How much of an answer has come, and is kept: docs/design/errors-and-streams.md, Answers that are bounded. */
import type { InferenceEvent } from "../inference/event.ts";
import { UnreadableAnswer } from "../protocol/parts-bound.ts";
import { answer_bytes_max, type Hold } from "./engine-json.ts";

/** Code units of all parts together: everything that keeps a whole answer is bounded by it. */
const text_max = answer_bytes_max;
/** Bytes that an answer that nobody streams may take in memory. */
const kept_bytes_max = 64 * 1024 * 1024;
/** Bytes of each piece beside its text, and of each token that may have stood there. */
const piece_bytes = 48;
const logprob_bytes = 256;

/** A request has so much for whatever it holds beside its body. */
const free_bytes = 64 * 1024;

/** Says it where it is much, or was. */
export function whereMuch(hold: Hold): Hold {
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
