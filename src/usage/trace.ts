/** Whoever follows a run on its way, where it is traced. Nothing that it is told is content. */
import type { AttemptKind } from "../upstream/attempt.ts";
import type { Upstream } from "../upstream/target.ts";

export interface RunTrace {
  /** Of a trace that is kept: what metrics name as an example. */
  readonly sampledId: string | undefined;
  /** The ledger is asked; to be told the code of the refusal, or null. */
  admission(): (code: string | null) => void;
  /** An engine is asked. */
  attempt(upstream: Pick<Upstream, "name" | "address" | "protocol">, engineModel: string): AttemptTrace;
  /** The first part of the answer has come; again, where it began anew. */
  firstPart(): void;
  /** The ledger is told; to be called when it has confirmed that. */
  settlement(): () => void;
}

export interface AttemptTrace {
  /** For the engine: `traceparent`, and `tracestate` where there is one. */
  headers: Record<string, string>;
  ended(outcome: AttemptKind, status: number | undefined): void;
}
