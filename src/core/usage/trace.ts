/** Observes a run that is traced. It is given no content. */
import type { Operation } from "../store/ledger.ts";
import type { AttemptKind, EngineReport } from "../upstream/attempt.ts";
import type { Upstream } from "../upstream/target.ts";

export interface RunTrace {
  /** The id of the trace if it is sampled; metrics name it as an exemplar. */
  readonly sampledId: string | undefined;
  /** The run asks the ledger for admission. Call the returned function with the code of the refusal, or null. */
  admission(operation: Operation): (code: string | null) => void;
  /** The request was granted, and is counted in this team. */
  counted(teamId: string): void;
  /** An attempt at an engine begins. */
  attempt(upstream: Pick<Upstream, "name" | "url" | "address" | "protocol">, engineModel: string): AttemptTrace;
  /** The first part of the answer has arrived. Called again if the answer begins again. */
  firstPart(): void;
  /** The record is sent to the ledger. Call the returned function once it is confirmed. */
  settlement(): () => void;
}

export interface AttemptTrace {
  /** Headers for the engine: `traceparent`, and `tracestate` if there is one. */
  headers: Record<string, string>;
  ended(outcome: AttemptKind, status: number | undefined, report: EngineReport): void;
}
