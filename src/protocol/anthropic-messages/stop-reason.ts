/** Why an answer ended, both ways. */
import type { StopReason } from "../../inference/event.ts";
import type { MessagesRequest, MessagesStopReason } from "./contract.ts";

export interface Stop {
  stop_reason: MessagesStopReason;
  stop_sequence: string | null;
}

/** What an answer held, as far as its end depends on it. */
export interface Held {
  calls: boolean;
  refused: boolean;
}

/** A sequence counts only if the caller asked for it: engines stop at some of their own. */
export function encodeStop(
  end: { reason: StopReason; stopSequence?: string },
  held: Held,
  { stop_sequences: asked }: Pick<MessagesRequest, "stop_sequences">,
): Stop {
  const because = (stop_reason: MessagesStopReason): Stop => ({ stop_reason, stop_sequence: null });
  if (end.reason === "length") return because("max_tokens");
  if (end.reason === "content_filter" || held.refused) return because("refusal");
  if (held.calls) return because("tool_use");
  if (end.stopSequence !== undefined && asked?.includes(end.stopSequence))
    return { stop_reason: "stop_sequence", stop_sequence: end.stopSequence };
  return because("end_turn");
}

/** An engine that names no reason, or one that nobody knows, has come to its natural end. */
export function decodeStop(said: string | null, held: Pick<Held, "calls">): StopReason {
  if (said === "max_tokens" || said === "model_context_window_exceeded") return "length";
  if (said === "refusal") return "content_filter";
  return held.calls ? "tool_calls" : "stop";
}
