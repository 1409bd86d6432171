/** The parts of a node that kept answers need, and their limits. */

import type { Clock } from "../../core/time/clock.ts";
import type { StorageRoom } from "./room.ts";
import type { AnswerLogs } from "./store/answer-log.ts";
import type { KeptAnswers } from "./store/kept.ts";

export interface KeptParts {
  answers: KeptAnswers;
  logs: AnswerLogs;
  settings(): KeptLimits;
  /** How long an admission may take. */
  grant_ms(): number;
  clock: Clock;
  /** The answers that this node keeps and that have not ended. */
  open: Set<OpenAnswer>;
  room: Pick<StorageRoom, "ask">;
  metrics: KeptMetrics;
}

export interface OpenAnswer {
  readonly requestId: string;
  /** A background response: another node may cancel it. */
  readonly isBackground: boolean;
  /** Ends the work on it. Does nothing once it has ended. */
  cancel(): void;
}

interface KeptLimits {
  /** The limit of the log of one answer. */
  answer_bytes_max: number;
  /** The limit of all ended logs of an organization. */
  organization_bytes_max: number;
  /** The limit of answers that one node keeps at once. */
  open_max: number;
}

export interface KeptMetrics {
  /** The log of an answer is whole, and has so many bytes. */
  kept(bytes: number): void;
  /** An answer could not be kept to its end. */
  unkept(why: Unkept): void;
  /** A request got the answer of an earlier one. */
  replayed(): void;
}

/** Why an answer could not be kept: it was too large, or the store of its log was away or had forgotten it. */
export type Unkept = "size" | "store";
