/** Observes a run that is traced. It gets no content. */
import type { Operation } from "../store/ledger.ts";
import type { AttemptKind, EngineReport } from "../upstream/attempt.ts";
import type { Upstream } from "../upstream/target.ts";

export interface RunTrace {
  /** The id of a sampled trace, which metrics name as an exemplar. */
  readonly sampledId: string | undefined;
  /** A run begins, and asks the ledger. The returned function is called with the code of the refusal, or null. */
  admission(operation: Operation): (code: string | null) => void;
  /** The request was granted, and counts in this team. */
  counted(teamId: string): void;
  /** An engine is asked. */
  attempt(upstream: Pick<Upstream, "name" | "url" | "address" | "protocol">, engineModel: string): AttemptTrace;
  /** The first part of the answer has arrived; again, if the answer began again. */
  firstPart(): void;
  /** The record is sent to the ledger. The returned function is called once that is confirmed. */
  settlement(): () => void;
}

export interface AttemptTrace {
  /** Headers for the engine: `traceparent`, and `tracestate` if there is one. */
  headers: Record<string, string>;
  ended(outcome: AttemptKind, status: number | undefined, report: EngineReport): void;
}
