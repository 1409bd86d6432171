/** Bytes of a streamed answer → events, whatever the cuts: one frame after the other, and those that are alike at once. */
import type { InferenceEvent } from "../inference/event.ts";
import type { Transducer } from "../protocol/codec.ts";
import { SseDecoder } from "../sse/decode.ts";
import type { SseMessage } from "../sse/message.ts";
import { DeltaFrames } from "./delta-frames.ts";

export class StreamReader {
  readonly #decoder: Transducer<SseMessage, InferenceEvent>;
  readonly #frames = new SseDecoder();
  readonly #alike = new DeltaFrames();

  constructor(decoder: Transducer<SseMessage, InferenceEvent>) {
    this.#decoder = decoder;
  }

  /** What these bytes complete, in order. Throws SseOverflow. */
  push(pieces: readonly Uint8Array[]): InferenceEvent[] {
    const batch: InferenceEvent[] = [];
    for (const piece of pieces) {
      const delta = this.#frames.isBetween ? this.#alike.read(piece) : null;
      if (delta) batch.push(delta);
      else for (const event of this.#read(piece)) batch.push(event);
    }
    return batch;
  }

  /** The answer has come to its end. */
  end(): InferenceEvent[] {
    return this.#decoder.end();
  }

  #read(piece: Uint8Array): InferenceEvent[] {
    const wasBetween = this.#frames.isBetween;
    const messages = this.#frames.push(piece);
    const events = messages.flatMap((message) => this.#decoder.push(message));
    this.#alike.learn(piece, events, wasBetween && this.#frames.isBetween && messages.length === 1);
    return events;
  }
}
