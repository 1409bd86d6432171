/** How one attempt at one engine ended, which decides whether another engine is asked. */
import type { StopReason } from "../inference/event.ts";
import { Fault } from "../inference/fault.ts";
import type { Usage } from "../inference/usage.ts";
import { UnreadableAnswer } from "../protocol/parts-bound.ts";
import { isMisconfigured, malformedAnswer } from "../protocol/refusal.ts";
import { SseOverflow } from "../sse/decode.ts";
import { ConnectionLost } from "./http1/connection.ts";
import { ConnectFailed } from "./http1/dial.ts";
import type { Reply } from "./http1/exchange.ts";

export type AttemptKind =
  /** The answer came to its end. */
  | "answered"
  /** It came to its end, and nothing was in it. */
  | "empty"
  /** The caller went away, or the service ended the request. */
  | "abandoned"
  /** No connection came about. */
  | "unreachable"
  /** A connection that had served before closed before any byte of an answer. */
  | "stale"
  /** The connection broke, before the answer or in the middle of it. */
  | "broken"
  | "timeout"
  /** The engine answered 429, or 503 because its queue is full: it works. */
  | "busy"
  /** The engine answered 5xx, or reported an error in the middle of the stream. */
  | "failed"
  /** The engine answered 401, 402, 403 or 404, or said so: the operator's credential, balance or name of the model is wrong. */
  | "refused"
  /** The request is wrong, and would be for any engine. */
  | "rejected"
  /** The input is longer than the engine's context. */
  | "too_long"
  /** The engine sent no answer in its protocol. */
  | "malformed";

export interface AttemptEnd {
  kind: AttemptKind;
  /** The status of a refusal. */
  status?: number;
  /** The wait that a 429 or 5xx asked for, unbounded. */
  retryAfter_ms?: number;
  /** The engine's own text of a refusal, or of an error inside its answer, for operators alone. */
  said?: string;
  /** The reason why an answer was not read to its end, in words that quote nothing of it. */
  unread?: string;
  /** The engine's word for the end of its answer, if nobody knows it. */
  unknownReason?: string;
  /** The first fields of the engine's answer that its caller was not sent. */
  leftOut?: string[];
}

/** The engine's own report, as far as the attempt got. */
export interface EngineReport {
  /** Null: it reported none. */
  usage: Usage | null;
  /** Null: its answer did not come to an end. */
  reason: StopReason | null;
}

/** The end of an attempt that threw `cause`. */
export function endOfCause(cause: unknown): AttemptEnd {
  const kind = kindOfCause(cause);
  return cause instanceof UnreadableAnswer || cause instanceof SseOverflow ? { kind, unread: cause.message } : { kind };
}

/** The kind of an answer with another status than 200. */
export function kindOfRefusal(status: number, fault: Fault): AttemptKind {
  if (fault.code === "context_length_exceeded") return "too_long";
  if (fault.status === 400) return "rejected";
  if (status === 429 || fault.code === "capacity_exceeded") return "busy";
  if (isMisconfigured(fault)) return "refused";
  return status === 408 || status === 504 ? "timeout" : "failed";
}

/** The kind of a failure that was reported inside an answer. */
export function kindOfFault({ code, status }: Fault): AttemptKind {
  if (code === "context_length_exceeded") return "too_long";
  if (status === 400) return "rejected";
  if (code === "capacity_exceeded") return "busy";
  return code === "upstream_timeout" ? "timeout" : "failed";
}

/** There is no room in memory for the answer: nothing is wrong with the engine. */
export class NoRoom extends Error {
  override readonly name = "NoRoom";

  constructor(readonly fault: Fault) {
    super("there is no room for the answer", { cause: fault });
  }
}

/** The kind of an attempt that threw `cause`. */
export function kindOfCause(cause: unknown): AttemptKind {
  if (cause instanceof NoRoom) return "abandoned";
  if (cause instanceof ConnectFailed) return "unreachable";
  if (cause instanceof ConnectionLost) return cause.isStale ? "stale" : "broken";
  if (cause instanceof Fault) return kindOfFault(cause);
  return "malformed";
}

/** The fault that the caller reads. */
export function faultOfCause(cause: unknown): Fault {
  // If this engine's protocol cannot express the request, the caller has to change it.
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

/**
 * Seconds. At most a minute is relayed: agents wait as long as the header says, and an engine's "one day" is not ours to
 * promise.
 */
export function retryAfterOf({
  status,
  headers,
}: {
  status: number;
  headers: Pick<Reply["headers"], "get">;
}): number | null {
  const said = headers.get("retry-after");
  const seconds = Number(said);
  if (said === undefined || !Number.isFinite(seconds) || seconds < 0) return null;
  return status === 429 || status >= 500 ? seconds : null;
}
