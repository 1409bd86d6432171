/** Frames of one part, which differ in their delta alone (docs/design/protocols.md, Deltas as frames). */
import { encodeSse } from "../sse/encode.ts";
import type { SseMessage } from "../sse/message.ts";

/** A frame's text before and after its delta: `before + JSON.stringify(delta) + after` is the whole. */
export interface AroundDelta {
  before: string;
  after: string;
}

/** Of a message whose delta is empty, and behind which there is no other empty text. */
export function aroundDelta(message: SseMessage): AroundDelta {
  const frame = encodeSse(message);
  const at = frame.lastIndexOf('""');
  return { before: frame.slice(0, at), after: frame.slice(at + 2) };
}
