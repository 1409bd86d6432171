/** Translates the reason for an answer's end, in both directions. */
import type { StopReason } from "../../inference/event.ts";
import type { MessagesRequest, MessagesStopReason } from "./contract.ts";

export interface Stop {
  stop_reason: MessagesStopReason;
  stop_sequence: string | null;
}

/** The contents of an answer on which its stop reason depends. */
export interface Held {
  calls: boolean;
  refused: boolean;
}

/**
 * The stop reason in Messages. A stop sequence counts only if it is one of the caller's: engines also stop at stop
 * sequences of their own.
 */
export function encodeStop(
  end: { reason: StopReason; stopSequence?: string },
  held: Held,
  { stop_sequences: requested }: Pick<MessagesRequest, "stop_sequences">,
): Stop {
  const because = (stop_reason: MessagesStopReason): Stop => ({ stop_reason, stop_sequence: null });
  if (end.reason === "length") return because("max_tokens");
  if (end.reason === "content_filter" || held.refused) return because("refusal");
  if (held.calls) return because("tool_use");
  if (end.stopSequence !== undefined && requested?.includes(end.stopSequence))
    return { stop_reason: "stop_sequence", stop_sequence: end.stopSequence };
  return because("end_turn");
}

/**
 * Corrects the reason if the engine gave another one than `tool_use` after calls, or gave `tool_use` without any call.
 */
export function decodeStop(reason: StopReason, held: Pick<Held, "calls">): StopReason {
  if (reason === "length" || reason === "content_filter") return reason;
  return held.calls ? "tool_calls" : "stop";
}
