/** Whether an event is the last one of its stream. */
import type { InferenceEvent } from "./event.ts";

export type TerminalEvent = Extract<InferenceEvent, { type: "response-end" | "response-failed" }>;

export function isTerminal(event: InferenceEvent): event is TerminalEvent {
  return event.type === "response-end" || event.type === "response-failed";
}
