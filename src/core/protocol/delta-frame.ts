/** Frames of one part of an answer, which differ only in their delta (docs/design/protocols.md, Deltas as frames). */
import { encodeSse } from "../sse/encode.ts";
import type { SseMessage } from "../sse/message.ts";

/** A frame without its delta: the whole frame is `before + JSON.stringify(delta) + after`. */
export interface AroundDelta {
  before: string;
  after: string;
}

/**
 * The frame around the delta of this message. The message's delta must be empty, and be the last empty string in it.
 */
export function aroundDelta(message: SseMessage): AroundDelta {
  const frame = encodeSse(message);
  const at = frame.lastIndexOf('""');
  return { before: frame.slice(0, at), after: frame.slice(at + 2) };
}
