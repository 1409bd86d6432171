/**
 * The ledger: holds, which are amounts reserved for running requests, and records of ended requests. Postgres makes the
 * decisions (docs/design/metering.md, Who decides); this file is the interface to it. Commands are sent in batches, and
 * answers come in the order of the commands. A batch that rejects is sent again, and every command is idempotent by
 * request id. A refused command never fails its batch. Amounts are nanos of the currency, whole numbers, exact to
 * 10^15. Tokens are whole numbers.
 */

import type { Prices } from "../inference/model.ts";
import type { RejectedReport, Usage } from "../inference/usage.ts";
import type { Limited, LimitedBy } from "./budget.ts";

/** The largest amount. Sums of amounts up to it are exact. */
export const nanos_max = 1e15;
/** The most nanos that one window takes, whatever its limit: above this number, totals could not be read exactly. */
export const window_nanos_max = Number.MAX_SAFE_INTEGER;

export const meteredOperations = [
  "chat.completions",
  "messages",
  "responses",
  "embeddings",
  "rerank",
  "completions",
] as const;
export type Operation = (typeof meteredOperations)[number];
export type WindowKind = "session" | "week" | "month";
export const windowKinds: readonly WindowKind[] = ["session", "week", "month"];
export type BillingSource = "plan" | "extra";

/**
 * The limits of usage windows, and the limit on open requests. Null means no limit: the window then takes up to
 * `window_nanos_max`.
 */
export interface UsageLimits {
  session: number | null;
  week: number | null;
  month: number | null;
  concurrentRequests: number | null;
}

/** One usage window at the time of a decision: settled and held nanos, without those of the request in question. */
export interface WindowReading {
  kind: WindowKind;
  limit: number | null;
  used: number;
  held: number;
  startsAt: Date;
  resetAt: Date;
  /** Set if the window is shorter than others, because the calendar changed; its limit is in proportion. */
  isShort?: true;
}
export type WindowReadings = Record<WindowKind, WindowReading>;

/**
 * The limits and the use of one subject at the time of a decision:
 * - of a key, its person or its team, for all models;
 * - or of one of these, or of the organization, for a pattern of models.
 *
 * The ledger does not count rates.
 */
export interface SubjectReading {
  subject: LimitedBy;
  /** A public model id, or `prefix/*`; absent: all models. */
  models?: string;
  windows: WindowReadings;
  concurrentRequests: number | null;
  running: number;
}

/** An organization's extra usage in the billing month. A null cap means no limit. */
export interface ExtraReading {
  enabled: boolean;
  capNanos: number | null;
  used: number;
  held: number;
}

/** Facts that every record has, whatever the outcome of its request. */
export interface RequestFacts {
  /** `req_` + UUIDv7 hex. A batch has at most one command for a request. */
  requestId: string;
  organizationId: string;
  keyId: string;
  operation: Operation;
  /** The public model id. */
  model: string;
  stream: boolean;
  prices: Prices;
  /** The number of inputs, for operations that take several; absent: one input. */
  inputs?: number;
  /**
   * Set if the request came with an idempotency key: if its node is lost, the request costs nothing, and the client's
   * repeat of it is charged.
   */
  isRepeatable?: true;
}

export interface Admit extends RequestFacts {
  verb: "admit";
  /** The model's aliases, by which limits for models may name it, too. */
  aliases?: readonly string[];
  limits: UsageLimits;
  /** An upper estimate of the price of the input, at the highest input price, and of the request's searches. */
  inputNanos: number;
  /**
   * `outputTokens`: the number of output tokens for which the first hold reserves an amount. `outputTokens_min`: the
   * least to which this number may be cut if a window has less left. Both are in tokens at the output price.
   */
  outputTokens: number;
  outputTokens_min: number;
  lease_ms: number;
}
/**
 * Changes a hold to a new total (and not by an amount), so that a command that is sent twice adds nothing. The total
 * that is granted is as large as there is room for. After limits were lowered, there may be room for less than the hold
 * already has. Everything above `nanosTotal_min` is then given back.
 */
export interface Grow {
  verb: "grow";
  requestId: string;
  organizationId: string;
  /**
   * The number of this growth among the growths of the request's hold: 1, 2, … Because of this number, a command that
   * arrives twice, or after a later command, undoes nothing.
   */
  number: number;
  limits: UsageLimits;
  nanosTotal: number;
  /** The smallest total that is of use. If there is no room for it, the answer is `full`. */
  nanosTotal_min: number;
}
/** Records the use so far: absolute counts that only rise. Extends the lease of an open request. */
export interface Checkpoint {
  verb: "checkpoint";
  requestId: string;
  organizationId: string;
  /**
   * The number of the checkpoint among those of its request: 1, 2, … A checkpoint that arrives after a later one
   * changes no count.
   */
  number: number;
  usage: Usage;
  lease_ms: number;
}
export type Outcome = "completed" | "cancelled" | "failed" | "refused";
/**
 * Ends a request. If the request was never admitted, the record that this command makes prevents an admission that
 * arrives afterwards.
 */
export interface Settle extends RequestFacts {
  verb: "settle";
  limits: UsageLimits;
  usage: Usage;
  /** The number of searches that are charged; absent: none. */
  searches?: number;
  /**
   * The price of usage and searches, by the prices at admission. The ledger charges the part of it that fits under
   * every limit.
   */
  nanos: number;
  outcome: Outcome;
  stoppedBy: StoppingLimit | null;
  errorCode: string | null;
  /**
   * Facts for operators: the upstream that served the request, the number of attempts, and the time of the first part.
   */
  route: {
    upstream: string;
    attempts: number;
    firstPart_ms: number | null;
    /** The attempts. Left out if there was only one, and its upstream's name is enough to identify the engine. */
    tried?: readonly {
      upstream: string;
      replica?: string;
      outcome: string;
      ms: number;
      continued?: boolean;
      status?: number;
      said?: string;
    }[];
  } | null;
  /** For operators: the engine's usage report, if it was not accepted unchanged. */
  reportRejected: RejectedReport | null;
}
export type Command = Admit | Grow | Checkpoint | Settle;

export interface Granted {
  /** The total that the request now holds. */
  nanos: number;
  outputTokens: number;
  source: BillingSource;
  windows: WindowReadings;
  /** The readings of the key, its person and its team, if they have limits, and of limits for the model. */
  subjects?: SubjectReading[];
  /** The organization's limit on open requests, if it is another one than its plan's; null: none. */
  concurrentRequests?: number | null;
  /** The key's team, whether the team has limits or not; absent: the key has none. */
  teamId?: string;
  /** The store's clock at the decision. */
  at: Date;
}
export type AdmitAnswer =
  | ({ answer: "granted" } & Granted)
  | ({ answer: "exhausted" | "reserved" } & Shortage)
  | {
      answer: "concurrency";
      windows: WindowReadings;
      subjects?: SubjectReading[];
      /** The organization's own limit on open requests, if it has one in place of its plan's. */
      concurrentRequests?: number | null;
      at: Date;
    }
  /** The request is not admitted, because the ledger already has a record of its end. */
  | { answer: "over" }
  /** There is no organization with this id. */
  | { answer: "unknown" };
/**
 * The organization's windows that lack room for the smallest useful hold: because of settled usage (`exhausted`), or
 * only because of what other requests hold (`reserved`). The window that resets last comes first. Empty if only other
 * subjects lack room.
 */
export interface Shortage {
  kinds: WindowKind[];
  windows: WindowReadings;
  subjects?: SubjectReading[];
  extra: ExtraReading;
  /** The time zone of the organization's calendar; absent: UTC. */
  zone?: string;
  at: Date;
}
/** A limit that ends a running answer, because it leaves no room for more of the answer. */
export interface StoppingLimit extends Limited {
  window: WindowKind | "extra";
}
export interface FullLimit extends StoppingLimit {
  resetAt: Date;
}
export type GrowAnswer =
  | { answer: "granted"; nanos: number }
  /** `limits`: the limits that leave no room. Empty if the extra usage that paid for the request was ended. */
  | { answer: "full"; limits: readonly FullLimit[] }
  | { answer: "gone" };
export type CheckpointAnswer = { answer: "extended" } | { answer: "gone" };
export type SettleAnswer =
  | { answer: "settled"; charged: number; uncharged: number }
  /**
   * Another node had already settled the request as one whose node was lost, and had recorded less usage. The rest is
   * charged by an entry of its own, once (docs/design/metering.md, Rule 5: Settle exactly once).
   */
  | { answer: "late"; entryId: string; charged: number; uncharged: number }
  | { answer: "already" };

export type AnswerOf<C extends Command> = C extends Admit
  ? AdmitAnswer
  : C extends Grow
    ? GrowAnswer
    : C extends Checkpoint
      ? CheckpointAnswer
      : SettleAnswer;
export type LedgerAnswer = AdmitAnswer | GrowAnswer | CheckpointAnswer | SettleAnswer;

export interface Ledger {
  /**
   * Carries out the commands in one transaction, those of one request in order. Resolves when the transaction is
   * durable.
   */
  run(commands: readonly Command[]): Promise<LedgerAnswer[]>;
  /**
   * Settles at most `limit` holds whose lease has lapsed, and marks them `recovered`. Settles none if the store's clock
   * is outside `clock`. Leases that end too late, because the clock was set back, are shortened. Rejects if the store
   * does not answer.
   */
  recover(limit: number, clock?: ClockRange): Promise<Recovered>;
  /**
   * The organization's current windows. A session (the five-hour window) that is not open has used 0 and resets in five
   * hours. Rejects for an unknown id.
   */
  windows(organizationId: string, limits: UsageLimits): Promise<WindowReadings>;
  /** The limits and the use of this key, its person and its team, if they have limits, and of limits for models. */
  budgets(organizationId: string, keyId: string): Promise<SubjectReading[]>;
  receipt(organizationId: string, requestId: string): Promise<Receipt | null>;
  close(): Promise<void>;
}

/** The earliest and the latest time that the store's clock may show if nobody has set it. */
export interface ClockRange {
  earliest: Date;
  latest: Date;
}

export interface Recovered {
  settled: number;
  /** The time by the store's clock. */
  at: Date;
}

/** One request in the ledger, running or ended. */
export interface Receipt {
  requestId: string;
  organizationId: string;
  keyId: string;
  /** The person who owns the key; null: no person owns it. */
  personId: string | null;
  operation: Operation;
  model: string;
  stream: boolean;
  createdAt: Date;
  endedAt: Date | null;
  outcome: Outcome | "running";
  stoppedBy: StoppingLimit | null;
  errorCode: string | null;
  recovered: boolean;
  /**
   * When the request's own node, which had been cut off, charged usage that was missing when another node settled the
   * request. The receipt's usage and nanos include both charges. Null: nothing was charged late.
   */
  settledLateAt: Date | null;
  /** Whether the answer continued after its client had left. */
  detached: boolean;
  /**
   * The earlier request whose answer this request got as a repeat, at no cost; null if this request is not a repeat.
   */
  replayOf: string | null;
  usage: Usage;
  /** The number of inputs; null for operations that take one. */
  inputs: number | null;
  /** The number of searches that were charged. */
  searches: number;
  /** The prices that apply to the request. Null for a replay, which gets the answer of an earlier request. */
  prices: Prices | null;
  nanos: { held: number; charged: number; uncharged: number };
  /** The source that pays for the request. Null for a replay, which gets the answer of an earlier request. */
  source: BillingSource | null;
  /**
   * The windows in which the request counts. Null if the request was given up before it was admitted, or is a replay.
   */
  windows: Record<WindowKind, ReceiptWindow> | null;
  route: Settle["route"];
  reportRejected: RejectedReport | null;
}

export interface ReceiptWindow {
  startsAt: Date;
  resetAt: Date;
  limit: number | null;
  usedBefore: number;
  /** The window's use right after the settlement; null while the request runs. */
  usedAfter: number | null;
}
