/**
 * Reads frames of a stream that differ only in their delta, by comparing the bytes around the delta instead of parsing
 * lines and JSON. A frame that does not match is decoded in the ordinary way: docs/design/protocols.md, Deltas as
 * frames.
 */
import type { InferenceEvent, PartDelta } from "../inference/event.ts";

/** The bytes around the text of a delta, quotation marks included. */
interface Envelope {
  before: string;
  after: string;
  /** Whether the stream numbers its events, as Responses does. Comparisons ignore the number. */
  isNumbered: boolean;
  index: number;
  /** The delta of the frame from which the envelope was learned. */
  delta: string;
  /**
   * Whether the envelope was confirmed by a second frame with another delta, which was decoded in the ordinary way and
   * gave that delta.
   */
  isKnown: boolean;
}

/** Larger frames are not compared: they hold more than a token. */
const frame_bytes_max = 4096;

export class DeltaFrames {
  #envelope: Envelope | null = null;
  /** The index of the part that began last; -1 if it is a tool call, whose arguments only the decoders may read. */
  #index = -1;

  /** Returns the event if the bytes are one whole frame of this kind, else null. */
  read(bytes: Uint8Array): PartDelta | null {
    const envelope = this.#envelope;
    if (!envelope || bytes.length > frame_bytes_max) return null;
    const delta = deltaIn(textOf(bytes), envelope);
    if (delta === null || (delta !== envelope.delta && !envelope.isKnown)) return null;
    return { type: "part-delta", index: envelope.index, delta };
  }

  /** Learns from bytes that were decoded in the ordinary way. `isFrame`: they are one whole frame. */
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
 * The envelope around this delta in the frame. The delta may be elsewhere, or be written in another way: a second frame
 * with another delta confirms the envelope.
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
 * The delta between the known bytes. Null if those differ, or if the delta is empty, no JSON string, or has half a
 * character.
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
