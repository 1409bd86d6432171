/** The events of an answer, singly and as whole parts. */
import type { InferenceEvent, PartHead, StopReason } from "../../../src/core/inference/event.ts";
import type { Fault } from "../../../src/core/inference/fault.ts";
import type { StreamEncoder } from "../../../src/core/protocol/codec.ts";

type Event<Type extends InferenceEvent["type"]> = Extract<InferenceEvent, { type: Type }>;

export const begin = (index: number, part: PartHead): InferenceEvent => ({ type: "part-start", index, part });
export function piece(index: number, delta: string, more: Partial<Event<"part-delta">> = {}): InferenceEvent {
  return { type: "part-delta", index, delta, ...more };
}
export function finish(index: number, more: Partial<Event<"part-end">> = {}): InferenceEvent {
  return { type: "part-end", index, ...more };
}
/** The events of one part: its beginning, its deltas, and its end. */
export const part = (index: number, head: PartHead, ...deltas: string[]): InferenceEvent[] => [
  begin(index, head),
  ...deltas.map((delta) => piece(index, delta)),
  finish(index),
];

export const text: PartHead = { kind: "text" };
export const call = (toolName: string, callId = "c1"): PartHead => ({ kind: "tool-call", callId, toolName });

export function over(reason: StopReason, stopSequence?: string): InferenceEvent {
  return { type: "response-end", reason, ...(stopSequence ? { stopSequence } : {}) };
}
export const failed = (fault: Fault): InferenceEvent => ({ type: "response-failed", fault });

/** The frames that an encoder writes for a whole stream of these events. */
export const writtenBy = (encoder: StreamEncoder, events: readonly InferenceEvent[]) => [
  ...events.flatMap((event) => encoder.push(event)),
  ...encoder.end(),
];
