/** How one attempt at one engine ended. The end decides whether another engine gets the request. */
import type { StopReason } from "../inference/event.ts";
import { Fault } from "../inference/fault.ts";
import type { Usage } from "../inference/usage.ts";
import { UnreadableAnswer } from "../protocol/codec.ts";
import { isMisconfigured, malformedAnswer } from "../protocol/refusal.ts";
import { SseOverflow } from "../sse/decode.ts";
import { ConnectionLost } from "./http1/connection.ts";
import { ConnectFailed } from "./http1/dial.ts";
import type { Reply } from "./http1/exchange.ts";

export type AttemptKind =
  | "answered"
  /** The answer is complete, but has no content. */
  | "empty"
  /** The caller left, or the service ended the request. */
  | "abandoned"
  | "unreachable"
  /** A reused connection closed before any byte of an answer. */
  | "stale"
  /** The connection broke, before the answer or in the middle of it. */
  | "broken"
  | "timeout"
  /** The engine answered 429, or 503 because its queue is full: it is healthy. */
  | "busy"
  /** The engine answered 5xx, or reported an error in the middle of the stream. */
  | "failed"
  /**
   * The engine answered 401, 402, 403 or 404, or its message means that: the operator's credential, balance or model
   * name is wrong.
   */
  | "refused"
  /** The request is wrong, and any engine would refuse it. */
  | "rejected"
  /** The input is longer than the engine's context. */
  | "too_long"
  /** The answer does not follow the engine's protocol. */
  | "malformed";

export interface AttemptEnd {
  kind: AttemptKind;
  /** The status of a refusal. */
  status?: number;
  /** The wait that a 429 or 5xx asked for, without an upper bound. */
  retryAfter_ms?: number;
  /** The engine's own text of a refusal, or of an error inside its answer, for operators only. */
  said?: string;
  /** The reason why an answer was not read to its end, without a quotation of it. */
  unread?: string;
  /** The reason why no connection was made, or why it broke, in the runtime's words. They may name the engine. */
  lost?: string;
  /** The finish reason that the engine sent, if the engine's dialect does not know it. */
  unknownReason?: string;
  /** The names of the first fields of the answer that were not passed on to the caller. */
  leftOut?: string[];
}

/** The usage and the finish reason that the engine reported until the attempt ended. */
export interface EngineReport {
  /** The usage; null: the engine reported none. */
  usage: Usage | null;
  /** The finish reason; null: the answer did not end. */
  reason: StopReason | null;
}

export function endOfCause(cause: unknown): AttemptEnd {
  const kind = kindOfCause(cause);
  if (cause instanceof ConnectFailed || cause instanceof ConnectionLost)
    return { kind, lost: String(cause.cause ?? cause.message) };
  return cause instanceof UnreadableAnswer || cause instanceof SseOverflow ? { kind, unread: cause.message } : { kind };
}

/** The kind of end of an attempt that was answered with another status than 200. */
export function kindOfRefusal(status: number, fault: Fault): AttemptKind {
  if (fault.code === "context_length_exceeded") return "too_long";
  if (fault.status === 400) return "rejected";
  if (isMisconfigured(fault)) return "refused";
  if (status === 429 || fault.code === "capacity_exceeded") return "busy";
  return status === 408 || status === 504 ? "timeout" : "failed";
}

/** The kind of end of an attempt whose answer contained a failure. */
export function kindOfFault({ code, status }: Fault): AttemptKind {
  if (code === "context_length_exceeded") return "too_long";
  if (status === 400) return "rejected";
  if (code === "capacity_exceeded") return "busy";
  return code === "upstream_timeout" ? "timeout" : "failed";
}

/** Thrown if there is no memory for the answer. The engine is not to blame. */
export class NoRoom extends Error {
  override readonly name = "NoRoom";

  constructor(readonly fault: Fault) {
    super("there is no room for the answer", { cause: fault });
  }
}

export function kindOfCause(cause: unknown): AttemptKind {
  if (cause instanceof NoRoom) return "abandoned";
  if (cause instanceof ConnectFailed) return "unreachable";
  if (cause instanceof ConnectionLost) return cause.isStale ? "stale" : "broken";
  if (cause instanceof Fault) return kindOfFault(cause);
  return "malformed";
}

/** The fault for the caller of an attempt that threw `cause`. */
export function faultOfCause(cause: unknown): Fault {
  // This Fault is about the request, which this engine's protocol cannot express: the caller has to change it.
  if (cause instanceof Fault) return cause;
  if (cause instanceof NoRoom) return cause.fault;
  if (cause instanceof UnreadableAnswer || cause instanceof SseOverflow) return malformedAnswer(cause);
  if (cause instanceof ConnectFailed && cause.isTimeout) return tooSlow("the connection");
  const message =
    "The model's engine could not be reached, or stopped before its answer was complete. Please try again.";
  return new Fault("upstream_unavailable", message, { retryAfterSeconds: 1, cause });
}

export function tooSlow(waitedFor: string): Fault {
  return new Fault("upstream_timeout", "The model's engine took too long to answer. Please try again.", {
    retryAfterSeconds: 1,
    cause: new Error(`the upstream took too long: ${waitedFor}`),
  });
}

/** The `retry-after` of a refusal in seconds, without an upper bound; null if there is none. */
export function retryAfterOf({ status, headers }: Pick<Reply, "status" | "headers">): number | null {
  const said = headers.get("retry-after");
  const seconds = Number(said);
  if (said === undefined || !Number.isFinite(seconds) || seconds < 0) return null;
  return status === 429 || status >= 500 ? seconds : null;
}
