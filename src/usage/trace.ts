/** The observer of a run that is traced. It is given no content. */
import type { AttemptKind } from "../upstream/attempt.ts";
import type { Upstream } from "../upstream/target.ts";

export interface RunTrace {
  /** The id of a sampled trace, which metrics name as an exemplar. */
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
  /** Headers for the engine: `traceparent`, and `tracestate` if there is one. */
  headers: Record<string, string>;
  ended(outcome: AttemptKind, status: number | undefined): void;
}
