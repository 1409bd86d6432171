/**
 * Answers that are kept, so that they can be read again: those of requests with an idempotency key, and background
 * responses. A claim says which run answers a key, and the database alone decides it. The text of an answer is in its log
 * (answer-log.ts).
 */

import type { Operation } from "../../../core/store/ledger.ts";
import type { LogName } from "./answer-log.ts";

export interface Claim {
  /** SHA-256 of the key with its owner and operation, as hexadecimal digits. */
  key: string;
  /** SHA-256 of the request's body, as hexadecimal digits. */
  body: string;
}

export interface NewKept extends LogName {
  /** Null: the request came without an idempotency key. */
  claim: Claim | null;
}

/** `open`: it runs, or its node is gone. `ended`: its log is whole. `lost`: its log is gone, or was never whole. */
export type KeptState = "open" | "ended" | "lost";

export interface Kept extends LogName {
  state: KeptState;
  /** The digest of the body that came with the claim. Null: it has no claim, or has given it up. */
  body: string | null;
  responseId: string | null;
  /** The response object of a background response, as JSON text. */
  response: string | null;
  /** How long ago it began, by the store's clock. */
  age_ms: number;
}

export interface KeptEnd {
  state: Exclude<KeptState, "open">;
  /** The size of the log. */
  bytes: number;
  /** Replaces the response object of a background response. */
  response?: string;
  /** The answer gives up its claim, so that its key is free. */
  freesClaim?: boolean;
}

/** The part of a receipt that the ledger doesn't have: the answer went on without its client, or repeated another. */
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
  /** Keeps a new answer, unless another one holds its claim: then returns that one. Of two at once, one wins. */
  begin(kept: NewKept): Promise<"begun" | Kept>;
  find(requestId: string): Promise<Kept | null>;
  /** A background response of the organization. */
  response(organizationId: string, responseId: string): Promise<Kept | null>;
  /** Ends an open one. Returns whether it was open. */
  end(requestId: string, end: KeptEnd): Promise<boolean>;
  /** Makes an open answer a background response, as it stands at its start. Returns whether it was open. */
  respond(requestId: string, responseId: string, response: string): Promise<boolean>;
  /** Forgets an answer, so that its claim is free. Returns whether it existed. */
  free(requestId: string): Promise<boolean>;
  /**
   * Ends an answer whose node is gone, so that its claim is free; not one that has a grant by now, was charged, or is a
   * background response by now, which would seem to run for ever: this may arrive late. Returns whether its claim is free.
   * Its log stays for those who read it.
   */
  abandon(requestId: string): Promise<boolean>;
  /** The ids among these whose answers are not open any more. */
  ended(requestIds: readonly string[]): Promise<string[]>;
  /**
   * Gives up the logs of the organization's oldest ended answers until the rest is within this size. Returns the names
   * of logs to remove.
   */
  makeRoom(organizationId: string, bytes_max: number): Promise<LogName[]>;
  /** Forgets some that have expired, and all of organizations that keep no content. Returns the names of logs to remove. */
  forget(): Promise<LogName[]>;
  /** Stores the note that the receipt of a request shows. */
  writeNote(log: LogName, note: AnswerNote): Promise<void>;
}
