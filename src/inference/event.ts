/**
 * THE CENTRE, part two: what a model answers, as a stream of events.
 *
 *     response-start (part-start part-delta* part-end)* (response-end | response-failed)
 *
 * `response-failed` may come first and alone. A second `response-start` begins the answer anew: what came before it is void.
 * That happens only where nobody reads the events as they come (docs/design/usage.md, Answers that nobody streams). `usage` may stand anywhere, is cumulative, and the last one wins. Parts may
 * be open side by side (engines interleave tool fragments); `index` counts up from 0 in order of part-start.
 */
import type { Fault } from "./fault.ts";
import type { Native } from "./request.ts";
import type { RejectedReport, Usage } from "./usage.ts";

export type InferenceEvent =
  | { type: "response-start"; responseId: string; model: string; createdAtSeconds: number }
  | { type: "part-start"; index: number; part: PartHead }
  | { type: "part-delta"; index: number; delta: string; logprobs?: TokenLogprob[] }
  /** `signature` proves a reasoning part; `citations` belong to a text part, in the words of the engine's protocol. */
  | { type: "part-end"; index: number; signature?: string; citations?: Native[] }
  /** `rejected`: what of an engine's words is no count; it stands as 0 in `usage`. */
  | { type: "usage"; usage: Usage; rejected?: RejectedReport }
  | { type: "response-end"; reason: StopReason; stopSequence?: string }
  | { type: "response-failed"; fault: Fault };

export type PartDelta = Extract<InferenceEvent, { type: "part-delta" }>;

export type PartHead =
  | { kind: "text" }
  | { kind: "refusal" }
  | { kind: "reasoning"; encrypted?: string }
  | { kind: "tool-call"; callId: string; toolName: string; namespace?: string; custom?: boolean };

/** Why generation ended. `stop` covers the natural end and a stop sequence. */
export type StopReason = "stop" | "length" | "tool_calls" | "content_filter";

/** One token's log probability, in the words of chat completions (Responses uses the same). */
export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[] | null;
  top_logprobs: { token: string; logprob: number; bytes: number[] | null }[];
}
