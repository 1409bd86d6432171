/**
 * Turns the bytes of a streamed answer into events, however they are cut. Frames that differ only in their delta take a
 * shorter way.
 */
import type { InferenceEvent } from "../inference/event.ts";
import type { AnswerReader, EngineDecoder, EngineEvent } from "../protocol/codec.ts";
import { SseDecoder, type SseMessage, sseLimits } from "../sse/decode.ts";
import { DeltaFrames } from "./delta-frames.ts";
import { parseLarge, unseen_bytes } from "./engine-json.ts";
import { read_bytes_max, unread_bytes_max } from "./http1/exchange.ts";

type Batch = InferenceEvent[];

export class StreamReader implements AnswerReader {
  readonly #decoder: EngineDecoder;
  readonly #frames: SseDecoder;
  readonly #alike = new DeltaFrames();

  constructor(decoder: EngineDecoder) {
    this.#decoder = decoder;
    this.#frames = new SseDecoder(sseLimits, (event) => decoder.reads(event));
  }

  /** The bytes of an incomplete event. */
  get held_bytes(): number {
    return this.#frames.held_bytes;
  }

  /**
   * The most bytes of the next read. In the middle of a large event it is twice what is held of it: nothing is there
   * yet that could wait for a slow reader, and what follows the event in the same read should not be much more than the
   * event.
   */
  get next_bytes(): number {
    return Math.min(unread_bytes_max, Math.max(read_bytes_max, 2 * this.held_bytes));
  }

  /**
   * The events that these bytes complete, in order; a promise if a large one is among them. Throws SseOverflow or
   * UnreadableAnswer.
   */
  push(pieces: readonly Uint8Array[]): Batch | Promise<Batch> {
    const batch: Batch = [];
    for (let at = 0; at < pieces.length; at++) {
      const piece = pieces[at]!;
      const delta = this.#frames.isBetween ? this.#alike.read(piece) : null;
      if (delta) {
        batch.push(delta);
        continue;
      }
      const wasBetween = this.#frames.isBetween;
      const messages = this.#frames.push(piece);
      if (messages.some(isLarge)) return this.#pushSlowly(batch, messages, pieces.slice(at + 1));
      const events = messages.flatMap((message) => this.#decoder.push(message));
      this.#alike.learn(piece, events, wasBetween && this.#frames.isBetween && messages.length === 1);
      for (const event of events) batch.push(event);
    }
    return batch;
  }

  /** Call it at the end of the answer, for the last events. Some engines leave out the blank line behind the last. */
  end(): Batch | Promise<Batch> {
    const [last] = this.#frames.isBetween ? [] : this.#frames.push(blankLine);
    if (!last) return this.#decoder.end();
    if (isLarge(last)) return this.#endSlowly(last);
    const events: Batch = [];
    // An event that was cut off is no JSON, and is dropped.
    for (const data of isWhole(last.data) ? [last.data] : last.data.split("\n")) {
      if (!isWhole(data)) break;
      events.push(...this.#decoder.push({ ...last, data }));
    }
    return [...events, ...this.#decoder.end()];
  }

  async #endSlowly(last: SseMessage): Promise<Batch> {
    const event = await looked(last).catch(() => null);
    return [...(event ? this.#decoder.push(event) : []), ...this.#decoder.end()];
  }

  async #pushSlowly(batch: Batch, messages: readonly SseMessage[], rest: readonly Uint8Array[]): Promise<Batch> {
    const events: Batch = [];
    for (const message of messages.flatMap(separated))
      for (const event of this.#decoder.push(await looked(message))) events.push(event);
    this.#alike.learn(nothing, events, false);
    return [...batch, ...events, ...(await this.push(rest))];
  }
}

const nothing = new Uint8Array();
const blankLine = new TextEncoder().encode("\n\n");
const doneLine = "\n[DONE]";

/** Whether this is the complete data of an event. */
function isWhole(data: string): boolean {
  if (data.trim() === "[DONE]") return true;
  try {
    JSON.parse(data);
    return true;
  } catch {
    return false;
  }
}

/** Splits a large event from a `[DONE]` that only one line end separates from it. */
function separated(message: SseMessage): SseMessage[] {
  const { data } = message;
  if (!isLarge(message) || !data.endsWith(doneLine)) return [message];
  return [{ ...message, data: data.slice(0, -doneLine.length) }, { data: "[DONE]" }];
}

function isLarge({ data }: SseMessage): boolean {
  return data.length > unseen_bytes;
}

async function looked(message: SseMessage): Promise<EngineEvent> {
  if (!isLarge(message)) return message;
  const value = await parseLarge(message.data);
  return { ...message, data: "", parsed: { value } };
}
