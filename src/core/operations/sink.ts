/**
 * THE SEAM OF KEPT ANSWERS: a feature that keeps answers beyond their connection, runs requests in the background, and
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
   * The sink that keeps the answer of this request; null if it is not kept, as for most requests. The sink ends with
   * the call. Throws the Fault of an organization that keeps no content.
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
  /** How the answer is fetched, if it is a background response; else null. */
  readonly fetched: Fetched | null;
  /** Claims the request's key, or returns the answer of the earlier request that this one repeats. Throws Faults. */
  begin(): Promise<EarlierAnswer | null>;
  /** Called when the run has begun. */
  follows(run: Run): void;
  /** Keeps the events of the run, and answers with them. */
  answer<Wire extends InferenceWire, Reply>(answering: Answering<Wire, Reply>): Promise<HttpAnswer>;
}

export interface EarlierAnswer {
  /**
   * Answers a repeated request from the kept answer, without an engine and without a charge. `wire`: the part of the
   * repeat's body that is needed to encode the answer.
   */
  answer<Wire extends InferenceWire, Reply>(
    repeat: { principal: Principal; wire: Wire },
    adapter: Adapter<Wire, Reply>,
  ): Promise<HttpAnswer>;
}

/** Keeps nothing: each answer goes to its connection alone. */
export const noSinks: AnswerSinks = { sinkOf: () => null };
