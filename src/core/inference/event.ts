/**
 * The centre (the protocol-independent form of requests and answers), part two: a model's answer, as a stream of events
 * in this grammar.
 *
 * response-start (part-start (part-delta | passed)* part-end)* (response-end | response-failed)
 *
 * `response-failed` may come first and alone. A second `response-start` begins the answer anew, and the events before
 * it are void. That happens only if nobody reads the events as they come (docs/design/usage.md, Answers that aren't
 * streamed). `usage` may come anywhere. Its counts are cumulative, so the last `usage` event is the valid one. Several
 * parts may be open at a time, because engines interleave the fragments of calls. `index` counts up from 0 in order of
 * part-start.
 */
import type { Fault } from "./fault.ts";
import type { Native } from "./request.ts";
import type { RejectedReport, Usage } from "./usage.ts";

export type InferenceEvent =
  /** `leftOutTurns` is the number of turns that the engine was not sent (compaction.ts). */
  | { type: "response-start"; responseId: string; model: string; createdAtSeconds: number; leftOutTurns?: number }
  | { type: "part-start"; index: number; part: PartHead }
  | { type: "part-delta"; index: number; delta: string; logprobs?: TokenLogprob[] }
  /**
   * `signature` is the engine's signature of a reasoning part; `citations` belong to a text part, in the form of the
   * engine's protocol.
   */
  | { type: "part-end"; index: number; signature?: string; citations?: Native[] }
  /** `rejected`: the values of the engine's report that are not valid counts. Those counts are 0 in `usage`. */
  | { type: "usage"; usage: Usage; rejected?: RejectedReport }
  /** A piece of an answer that is passed on as its engine wrote it. */
  | { type: "passed"; bytes: Uint8Array }
  /** `unknownReason`: the engine's word for the reason, if the word is unknown and was treated as `stop`. */
  | { type: "response-end"; reason: StopReason; stopSequence?: string; unknownReason?: string }
  | { type: "response-failed"; fault: Fault };

export type PartDelta = Extract<InferenceEvent, { type: "part-delta" }>;

export type PartHead =
  | { kind: "text" }
  | { kind: "refusal" }
  | { kind: "reasoning"; encrypted?: string }
  | { kind: "tool-call"; callId: string; toolName: string; namespace?: string; custom?: boolean };

/** The reason for the end of an answer. `stop` is the natural end, or a stop sequence. */
export type StopReason = "stop" | "length" | "tool_calls" | "content_filter";

/** One token's log probability, with field names as in chat completions and Responses. */
export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[] | null;
  top_logprobs: { token: string; logprob: number; bytes: number[] | null }[];
}

export type TerminalEvent = Extract<InferenceEvent, { type: "response-end" | "response-failed" }>;

export function isTerminal(event: InferenceEvent): event is TerminalEvent {
  return event.type === "response-end" || event.type === "response-failed";
}

export function isPartStart({ type }: InferenceEvent): boolean {
  return type === "part-start";
}

/** One part of an answer as text, for a tokenizer to count. */
export interface AnswerPart {
  kind: PartHead["kind"];
  /** The name of the called tool; "" if the part is not a call. */
  toolName: string;
  text: string;
}
