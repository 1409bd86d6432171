/** Observes a run that is traced. It gets no content of requests or answers. */
import type { Operation } from "../store/ledger.ts";
import type { AttemptKind, EngineReport } from "../upstream/attempt.ts";
import type { Upstream } from "../upstream/target.ts";

export interface RunTrace {
  /** The id of the trace if it is sampled; metrics name it as an exemplar. */
  readonly sampledId: string | undefined;
  /**
   * Called when the run asks the ledger for admission. Call the returned function with the code of the refusal, or
   * null.
   */
  admission(operation: Operation): (code: string | null) => void;
  /** Called when the request was granted, with the id of the team to whose usage the request counts. */
  counted(teamId: string): void;
  attempt(upstream: Pick<Upstream, "name" | "url" | "address" | "protocol">, engineModel: string): AttemptTrace;
  /** Called when the first part of the answer has arrived, and again if the answer begins again. */
  firstPart(): void;
  /**
   * Called when the record is sent to the ledger. Call the returned function once the ledger has confirmed the record.
   */
  settlement(): () => void;
}

export interface AttemptTrace {
  /** Headers for the engine: `traceparent`, and `tracestate` if there is one. */
  headers: Record<string, string>;
  ended(outcome: AttemptKind, status: number | undefined, report: EngineReport): void;
}
