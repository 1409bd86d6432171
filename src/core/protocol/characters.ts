/**
 * Keeps characters whole in an answer's text. Some engines cut a character in two at a token's end, and JSON then
 * brings each half as a lone surrogate: the first half waits here for the second. A half that stays alone becomes
 * U+FFFD.
 */
import type { InferenceEvent, PartDelta } from "../inference/event.ts";

export class WholeCharacters {
  /** The first halves that wait for their second, by the index of their part. */
  readonly #waiting = new Map<number, string>();

  /** The events with whole characters; the same events if no half is in them, which is nearly always so. */
  mend(events: InferenceEvent[]): InferenceEvent[] {
    if (this.#waiting.size === 0 && events.every(isWhole)) return events;
    return events.flatMap((event) => this.#mended(event));
  }

  #mended(event: InferenceEvent): InferenceEvent[] {
    switch (event.type) {
      case "part-delta":
        return this.#joined(event);
      case "part-end":
        return [...this.#given(event.index), event];
      case "response-end":
      case "response-failed":
        return [...[...this.#waiting.keys()].flatMap((index) => this.#given(index)), event];
      default:
        return [event];
    }
  }

  #joined(event: PartDelta): InferenceEvent[] {
    const { index } = event;
    const text = (this.#waiting.get(index) ?? "") + event.delta;
    const cut = endsInHalf.test(text) ? text.length - 1 : text.length;
    if (cut < text.length) this.#waiting.set(index, text.slice(cut));
    else this.#waiting.delete(index);
    const delta = text.slice(0, cut).toWellFormed();
    return delta === "" && !event.logprobs && event.delta !== "" ? [] : [{ ...event, delta }];
  }

  /** The replacement for a half that still waits in a part that has ended. */
  #given(index: number): InferenceEvent[] {
    const half = this.#waiting.get(index);
    this.#waiting.delete(index);
    return half === undefined ? [] : [{ type: "part-delta", index, delta: half.toWellFormed() }];
  }
}

const endsInHalf = /[\uD800-\uDBFF]$/;

function isWhole(event: InferenceEvent): boolean {
  return event.type !== "part-delta" || event.delta.isWellFormed();
}
