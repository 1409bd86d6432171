/**
 * The dependencies of the operations on stored and kept responses, in addition to those of the core; made by
 * `src/node`.
 */
import type { Dependencies } from "../../core/operations/dependencies.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { StorageRoom } from "./room.ts";
import type { AnswerLogs } from "./store/answer-log.ts";
import type { KeptAnswers } from "./store/kept.ts";
import type { ResponseStore } from "./store/responses.ts";

export interface ResponsesDependencies extends Dependencies {
  /** The stored responses that can be continued. */
  responses: { store: ResponseStore; settings(): ResponseSettings };
  /** The answers that are kept, so that they can be read again. */
  kept: KeptParts;
}

interface ResponseSettings {
  /** Whether responses are stored. If not, none is found either. */
  store: boolean;
  /** The most bytes of all stored responses of an organization. */
  organization_bytes_max: number;
}

/** The parts of a node that kept answers use. */
export interface KeptParts {
  answers: KeptAnswers;
  logs: AnswerLogs;
  settings(): KeptLimits;
  /** How long an admission may take, in milliseconds. */
  grant_ms(): number;
  clock: Clock;
  /** The answers that this node keeps and that still run. */
  open: Set<OpenAnswer>;
  room: Pick<StorageRoom, "ask">;
  metrics: KeptMetrics;
}

export interface OpenAnswer {
  readonly requestId: string;
  /** Whether the answer is a background response that has begun, which another node may cancel or delete. */
  readonly hasBegun: boolean;
  /** Ends the work on the answer. Has no effect after its end. */
  cancel(): void;
}

interface KeptLimits {
  answer_bytes_max: number;
  /** The most bytes of all ended logs of kept answers of an organization. */
  organization_bytes_max: number;
  /** The most answers that one node keeps at a time. */
  open_max: number;
}

export interface KeptMetrics {
  /** Called when the log of an answer is complete, with its size. */
  kept(bytes: number): void;
  /** Called when an answer could not be kept to its end. */
  unkept(why: Unkept): void;
  /** Called when a request got the answer of an earlier one. */
  replayed(): void;
}

/** Why an answer could not be kept: it was too large, or the store of its log was away or had forgotten it. */
export type Unkept = "size" | "store";
