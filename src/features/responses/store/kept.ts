/**
 * Answers that are kept to be read again: those of requests with an idempotency key, and background responses. A claim
 * says which run's answer a key gets, and only the database decides about claims. The text of an answer is in its log
 * (answer-log.ts).
 */

import type { Operation } from "../../../core/store/ledger.ts";
import type { LogName } from "./answer-log.ts";

export interface Claim {
  /** SHA-256 of the idempotency key with its owner and operation, as hexadecimal digits. */
  key: string;
  /** SHA-256 of the request's body, as hexadecimal digits. */
  body: string;
}

export interface NewKept extends LogName {
  /** The claim of the request's idempotency key. Null: the request had no such key. */
  claim: Claim | null;
}

/**
 * The state of a kept answer. `open`: the answer is still being made, or its node is gone. `ended`: its log is
 * complete. `lost`: its log is gone, or was never complete.
 */
export type KeptState = "open" | "ended" | "lost";

export interface Kept extends LogName {
  state: KeptState;
  /** The digest of the body that came with the claim. Null: there is no claim, or it was given up. */
  body: string | null;
  responseId: string | null;
  /** The response object of a background response, as JSON text. */
  response: string | null;
  /** The milliseconds since the answer began, by the store's clock. */
  age_ms: number;
}

export interface KeptEnd {
  state: Exclude<KeptState, "open">;
  bytes: number;
  /** The new response object of a background response. */
  response?: string;
  /** The id of the background response, which a failover may have forgotten. */
  responseId?: string;
  /** Whether the answer gives up its claim, so that its idempotency key becomes free. */
  freesClaim?: boolean;
}

/**
 * A fact for a request's receipt that the ledger does not store: that the answer continued without its client, or that
 * it repeated another answer.
 */
export type AnswerNote = { kind: "detached" } | ReplayNote;

export interface ReplayNote {
  kind: "replay";
  replayOf: string;
  keyId: string;
  operation: Operation;
  model: string;
  stream: boolean;
}

export interface KeptAnswers {
  /**
   * Keeps a new answer, unless another answer holds its claim; then returns that answer. Of two calls at the same time,
   * one wins.
   */
  begin(kept: NewKept): Promise<"begun" | Kept>;
  find(requestId: string): Promise<Kept | null>;
  /** A background response of the organization. */
  response(organizationId: string, responseId: string): Promise<Kept | null>;
  /** Ends an open answer. Returns whether it was open. */
  end(requestId: string, end: KeptEnd): Promise<boolean>;
  /** Notes the size of an ended answer's log, which was not known where the answer was ended. */
  measured(requestId: string, bytes: number): Promise<void>;
  /**
   * Makes an open answer a background response with this object. Refuses if its run is settled: its node was away for too
   * long, and another node has settled it. Returns whether the answer is a background response now.
   */
  respond(requestId: string, responseId: string, response: string): Promise<boolean>;
  /** Forgets an answer, so that its claim is free. Returns whether it existed. */
  free(requestId: string): Promise<boolean>;
  /**
   * Ends an answer whose node is gone, so that its claim becomes free. The answer may have changed since the caller
   * looked. So this refuses if the answer has a grant by now, was charged, or became a background response, which would
   * then seem to run for ever. Returns whether the claim is free. The log stays for its readers.
   */
  abandon(requestId: string): Promise<boolean>;
  /** Those of the given request ids whose answers are still open. The others have ended, or are forgotten. */
  open(requestIds: readonly string[]): Promise<string[]>;
  /**
   * Gives up the logs of the organization's oldest ended answers until the remaining logs together are within this
   * size. Returns the names of logs to remove.
   */
  makeRoom(organizationId: string, bytes_max: number): Promise<LogName[]>;
  /**
   * Forgets a number of expired answers, and all answers of organizations that keep no content. Returns the names of
   * logs to remove.
   */
  forget(): Promise<LogName[]>;
  /** Stores a note, which the receipt of its request shows. */
  writeNote(log: LogName, note: AnswerNote): Promise<void>;
}
