/**
 * What was used: holds of running requests and records of ended ones. Postgres decides (design/metering.md); this is the
 * door to it. Commands go in batches; each answer stands in its command's place. A batch that rejects was not confirmed:
 * it is sent again, and every verb is idempotent by request id. One refused command never fails a batch.
 *
 * Units are micro-units, whole numbers, exact to 10^15. Tokens are whole numbers.
 */
import type { Prices } from "../inference/model.ts";
import type { Usage } from "../inference/usage.ts";

export type Operation = "chat.completions" | "messages" | "responses";
export type WindowKind = "session" | "week" | "month";
export const windowKinds: readonly WindowKind[] = ["session", "week", "month"];
export type BillingSource = "plan" | "extra";

/** Null does not limit. */
export interface UsageLimits {
  session: number | null;
  week: number | null;
  month: number | null;
  concurrentRequests: number | null;
}

/** One window as a decision saw it: settled and held units, this request not yet counted. */
export interface WindowReading {
  kind: WindowKind;
  limit: number | null;
  used: number;
  held: number;
  startsAt: Date;
  resetAt: Date;
}
export type WindowReadings = Record<WindowKind, WindowReading>;

export interface Admit {
  verb: "admit";
  /** `req_` + UUIDv7 hex. */
  requestId: string;
  organizationId: string;
  keyId: string;
  operation: Operation;
  model: string;
  stream: boolean;
  prices: Prices;
  limits: UsageLimits;
  /** Upper estimate of the input, at the dearest input price. */
  inputUnits: number;
  /** The output step, and what it may shrink to when a window has less left, both in tokens at the output price. */
  outputTokens: number;
  outputTokensMin: number;
  leaseMs: number;
}
/** Carries the new total, so that a command sent twice adds nothing. */
export interface Grow {
  verb: "grow";
  requestId: string;
  organizationId: string;
  limits: UsageLimits;
  unitsTotal: number;
}
/** Absolute counts that only rise; extends the lease of a row that exists. */
export interface Checkpoint {
  verb: "checkpoint";
  requestId: string;
  organizationId: string;
  usage: Usage;
  leaseMs: number;
}
export type Outcome = "completed" | "cancelled" | "failed" | "refused";
export interface Settle {
  verb: "settle";
  requestId: string;
  organizationId: string;
  limits: UsageLimits;
  usage: Usage;
  /** What the usage costs at the admitted prices; the ledger charges what fits under every limit. */
  units: number;
  outcome: Outcome;
  stoppedBy: "usage_window" | null;
  errorCode: string | null;
  /** For operators: which upstream served, how often it was tried, when the first part came. */
  route: { upstream: string; attempts: number; firstPartMs: number | null } | null;
}
export type Command = Admit | Grow | Checkpoint | Settle;

export interface Granted {
  /** Units held in all. */
  units: number;
  outputTokens: number;
  source: BillingSource;
  windows: WindowReadings;
}
export type AdmitAnswer =
  | ({ answer: "granted" } & Granted)
  /** The windows that are full of settled use (`exhausted`), or only of holds (`reserved`); the one that resets last first. */
  | { answer: "exhausted" | "reserved"; kinds: WindowKind[]; windows: WindowReadings }
  | { answer: "concurrency"; windows: WindowReadings }
  /** A record with this id stands already. */
  | { answer: "over" };
export type GrowAnswer = { answer: "granted"; units: number } | { answer: "full" } | { answer: "gone" };
export type CheckpointAnswer = { answer: "extended" } | { answer: "gone" };
export type SettleAnswer = { answer: "settled"; charged: number; uncharged: number } | { answer: "already" };

export type AnswerOf<C extends Command> = C extends Admit
  ? AdmitAnswer
  : C extends Grow
    ? GrowAnswer
    : C extends Checkpoint
      ? CheckpointAnswer
      : SettleAnswer;
export type Answer = AdmitAnswer | GrowAnswer | CheckpointAnswer | SettleAnswer;

export interface Ledger {
  /** One transaction; resolves when it is durable. */
  run(commands: readonly Command[]): Promise<Answer[]>;
  /** Settles holds whose lease has lapsed at their last checkpoint, marked `recovered`; answers how many. */
  recover(limit: number): Promise<number>;
  /** The windows in force now; an idle session reads used 0 and a reset five hours from now. */
  windows(organizationId: string, limits: UsageLimits): Promise<WindowReadings>;
  receipt(organizationId: string, requestId: string): Promise<Receipt | null>;
  /** Totals against the sum of records: empty when they agree. */
  check(): Promise<{ organizationId: string; kind: WindowKind; startsAt: Date; used: number; recorded: number }[]>;
}

/** One request as the book has it, running or ended. */
export interface Receipt {
  requestId: string;
  organizationId: string;
  keyId: string;
  operation: Operation;
  model: string;
  stream: boolean;
  createdAt: Date;
  endedAt: Date | null;
  outcome: Outcome | "running";
  stoppedBy: "usage_window" | null;
  errorCode: string | null;
  recovered: boolean;
  usage: Usage;
  prices: Prices;
  units: { held: number; charged: number; uncharged: number };
  source: BillingSource;
  windows: Record<
    WindowKind,
    { startsAt: Date; resetAt: Date; limit: number | null; usedBefore: number; usedAfter: number | null }
  >;
  route: Settle["route"];
}
