/**
 * Turns the bytes of a streamed answer into events, however the bytes are split. Frames that differ only in their delta
 * are read in a faster way.
 */
import type { InferenceEvent, PartDelta } from "../inference/event.ts";
import type { AnswerReader, EngineDecoder, EngineEvent } from "../protocol/codec.ts";
import { SseDecoder, type SseMessage, sseLimits } from "../sse/decode.ts";
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

  /** The number of bytes kept of an incomplete event. */
  get held_bytes(): number {
    return this.#frames.held_bytes;
  }

  /**
   * The most bytes of the next read. In the middle of a large event, it is twice the size of the part that has arrived.
   * A large read is safe there: until the event is complete, there is nothing that a slow reader could be waiting for.
   * Yet the same read should not fetch much more than this event.
   */
  get next_bytes(): number {
    return Math.min(unread_bytes_max, Math.max(read_bytes_max, 2 * this.held_bytes));
  }

  /**
   * The events that these bytes complete, in order; if one of them is large, a promise of the events. Throws
   * SseOverflow or UnreadableAnswer.
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

  /**
   * Must be called at the end of the answer, and returns the last events. Some engines leave out the blank line after
   * the last event.
   */
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

/** The text of a frame before and after its delta, including the delta's quotation marks. */
interface Envelope {
  before: string;
  after: string;
  /** Whether the stream numbers its events, as Responses does. Comparisons ignore the number. */
  isNumbered: boolean;
  index: number;
  /** The delta of the frame from which the envelope was learned. */
  delta: string;
  /**
   * Whether the envelope is confirmed: a second frame with another delta was decoded in the ordinary way, and the
   * envelope gave the same delta.
   */
  isKnown: boolean;
}

/** Larger frames are not compared: they hold more than a token. */
const frame_bytes_max = 4096;

/**
 * Reads frames of a stream that differ only in their delta, by comparing the bytes around the delta instead of parsing
 * lines and JSON. A frame that does not match is decoded in the ordinary way: docs/design/protocols.md, Deltas as
 * frames.
 */
class DeltaFrames {
  #envelope: Envelope | null = null;
  /**
   * The index of the part that began last; -1 if the part is a tool call, whose arguments only the decoders may read.
   */
  #index = -1;

  /**
   * Returns the event if the bytes are one whole frame that differs from the known frame only in its delta, else null.
   */
  read(bytes: Uint8Array): PartDelta | null {
    const envelope = this.#envelope;
    if (!envelope || bytes.length > frame_bytes_max) return null;
    const delta = deltaIn(textOf(bytes), envelope);
    if (delta === null || (delta !== envelope.delta && !envelope.isKnown)) return null;
    return { type: "part-delta", index: envelope.index, delta };
  }

  /**
   * Learns the envelope, the text around the delta, from bytes that were decoded in the ordinary way. `isFrame`: the
   * bytes are one whole frame.
   */
  learn(bytes: Uint8Array, events: readonly InferenceEvent[], isFrame: boolean): void {
    for (const event of events) {
      if (event.type === "part-start") this.#index = event.part.kind === "tool-call" ? -1 : event.index;
    }
    const [event] = events;
    const isDelta = event?.type === "part-delta" && events.length === 1 && !event.logprobs;
    if (!isFrame || !isDelta || bytes.length > frame_bytes_max || event.index !== this.#index) {
      this.#envelope = null;
      return;
    }
    const text = textOf(bytes);
    const known = this.#envelope;
    if (known && deltaIn(text, known) === event.delta) {
      known.isKnown ||= event.delta !== known.delta;
    } else {
      this.#envelope = envelopeOf(text, event);
    }
  }
}

/**
 * The text around the first place where the delta occurs in the frame; null if the frame writes it in another way.
 * Another field may hold the same text, so a second frame with another delta has to confirm the envelope.
 */
function envelopeOf(text: string, { index, delta }: PartDelta): Envelope | null {
  const quoted = JSON.stringify(delta);
  const at = text.indexOf(quoted);
  if (at < 0) return null;
  const isNumbered = sequenceNumber.test(text);
  const [before, after] = [text.slice(0, at + 1), text.slice(at + quoted.length - 1)];
  const more = { isNumbered, index, delta, isKnown: false };
  return { before: isNumbered ? numbered(before) : before, after: isNumbered ? numbered(after) : after, ...more };
}

/**
 * The delta between the known bytes. Null if the frame does not begin and end with the known bytes, or if the delta is
 * empty, is not a JSON string, or has half of a surrogate pair.
 */
function deltaIn(frame: string, { before, after, isNumbered }: Envelope): string | null {
  const text = isNumbered ? numbered(frame) : frame;
  if (text.length <= before.length + after.length || !text.startsWith(before) || !text.endsWith(after)) return null;
  try {
    // This slice begins with a quotation mark, so it is either a string or malformed.
    const delta: string = JSON.parse(text.slice(before.length - 1, text.length - after.length + 1));
    return delta.isWellFormed() ? delta : null;
  } catch {
    return null;
  }
}

/**
 * The frame without its sequence number. A quotation mark inside a JSON string is always escaped, so the search finds
 * the number only outside of strings.
 */
function numbered(text: string): string {
  return text.replace(sequenceNumber, '"sequence_number":0');
}

const sequenceNumber = /"sequence_number":(?:0|[1-9]\d{0,15})/;

function textOf(bytes: Uint8Array): string {
  return Buffer.prototype.toString.call(bytes, "utf8");
}
