/**
 * THE SEAM OF ANSWERS that outlive their connection: a feature that keeps them, lets them run in the background, and
 * answers a repeat with the answer of the first request.
 */
import type { Principal } from "../auth/verdict.ts";
import type { Call } from "../http/call.ts";
import type { HttpAnswer } from "../http/frame.ts";
import type { Operation } from "../store/ledger.ts";
import type { Fetched } from "../usage/meter.ts";
import type { Run } from "../usage/run.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import type { Answering } from "./answering.ts";
import type { keyHeader } from "./idempotency.ts";

export interface AnswerSinks {
  /**
   * The sink of an answer; null if it is not kept, as for most requests. The call ends the sink. Throws the Fault of an
   * organization that keeps no content.
   */
  sinkOf(call: Call, asked: SinkAsked): AnswerSink | null;
}

export interface SinkAsked {
  principal: Principal;
  operation: Operation;
  headers: { [keyHeader]?: string } | undefined;
  /** The hash of the request's body; null if it was not asked for. */
  digest: string | null;
  isBackground: boolean;
  isStream: boolean;
}

export interface AnswerSink {
  /** Whether a request with the same key gets this answer. */
  readonly isRepeatable: boolean;
  /** Null if it is not a background response. */
  readonly fetched: Fetched | null;
  /** Takes the request, or returns the answer of the earlier one that it repeats. Throws Faults. */
  begin(): Promise<EarlierAnswer | null>;
  /** Called when the run has begun. */
  follows(run: Run): void;
  /** Answers with the events of the run, and keeps the answer. */
  answer<Wire extends InferenceWire, Reply>(answering: Answering<Wire, Reply>): Promise<HttpAnswer>;
}

export interface EarlierAnswer {
  /** Answers a repeat, which calls no engine and is not charged. `wire`: the part of its body that the answer needs. */
  answer<Wire extends InferenceWire, Reply>(
    repeat: { principal: Principal; wire: Wire },
    adapter: Adapter<Wire, Reply>,
  ): Promise<HttpAnswer>;
}

/** Keeps nothing: each answer goes to its connection alone. */
export const noSinks: AnswerSinks = { sinkOf: () => null };
