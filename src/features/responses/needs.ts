/** Types and faults that the writers and the readers of kept answers share. */
import { Fault } from "../../core/inference/fault.ts";
import type { ResponseIdentity } from "../../core/protocol/codec.ts";
import { within } from "../../core/time/cancellation.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { ResponsesDependencies } from "./dependencies.ts";
import type { LogEntry } from "./store/answer-log.ts";

/** How long a request waits for the stores of answers. */
const claim_ms_max = 3_000;
/** How often a reader asks for new entries. */
export const poll_ms = 100;
/** So long after a request's settlement its log may lack its end, and its response may be shown as running. */
export const settled_ms_max = 10_000;

/** The longest time from a claim to the admission of its request, with a margin. */
const admission_ms = 5_000;

/**
 * Whether a claim of this age without a grant will never get one, because its node is gone. A node that was only slow
 * finds its claim gone before it delivers anything. A negative age counts as well: the store's clock was set back.
 */
export function isUngranted({ kept }: Pick<KeepingNeeds, "kept">, age_ms: number): boolean {
  return Math.abs(age_ms) > kept.grant_ms() + admission_ms;
}

export type KeepingNeeds = Pick<ResponsesDependencies, "kept" | "ledger" | "limits" | "log">;

/** The first entry of a log. */
export interface LogHead {
  stream: boolean;
  /** The identity of the answer. Absent in logs of earlier versions. */
  identity?: ResponseIdentity;
  headers: Record<string, string>;
}

/** Ends a stream that another encoder began, with the protocol's form of a failure. */
export interface StreamEnding {
  /** Takes the frames that were already written to the stream, whole and in their order. */
  saw(frames: string): void;
  end(fault: Fault, requestId: string): string;
}

export function entriesText(entries: readonly LogEntry[]): string {
  return entries.map(({ text }) => text).join("");
}

export function answerLost(): Fault {
  return new Fault(
    "idempotency_answer_lost",
    "The answer to the first request with this 'idempotency-key' is no longer there: it was too large to be kept, made room for others, or was lost. It was charged then. Use a new key to ask again.",
    { param: "idempotency-key" },
  );
}

/** Waits for the store of answers. Throws if that takes too long. */
export function withinClaimTime<Value>(clock: Clock, work: Promise<Value>): Promise<Value> {
  return within(work, claim_ms_max, "the store of answers", undefined, clock);
}

/** Waits for the stores. Throws the fault that a client gets while they are away. */
export async function available<Value>({ kept }: Pick<KeepingNeeds, "kept">, work: Promise<Value>): Promise<Value> {
  try {
    return await withinClaimTime(kept.clock, work);
  } catch (cause) {
    throw unavailable(cause);
  }
}

/**
 * The fault if the first request still runs, on a node that was only slow: the client has to send its request again.
 */
export function goesOn(): Fault {
  return unavailable(new Error("the first request goes on"));
}

export function unavailable(cause: unknown): Fault {
  return new Fault("storage_unavailable", "The service cannot keep an answer now. Please try again.", {
    retryAfterSeconds: 1,
    cause,
  });
}
