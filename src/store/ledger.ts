/**
 * The ledger: holds of running requests and records of ended ones. Postgres decides (docs/design/metering.md, Who
 * decides); this is the interface to it. Commands go in batches, and each answer stands in its command's place. A batch
 * that rejects is sent again, and every verb is idempotent by request ID. One refused command never fails a batch.
 *
 * Units are micro-units, whole numbers, exact to 10^15. Tokens are whole numbers.
 */
import type { Prices } from "../inference/model.ts";
import type { RejectedReport, Usage } from "../inference/usage.ts";
import type { Lost } from "./lost.ts";
import type { ReportQuery, UsageReport } from "./report.ts";

/** Units are exact to here, sums of them too. */
export const units_max = 1e15;
/** The most that one window takes, whatever its limit: beyond it no total could be read exactly. */
export const window_units_max = Number.MAX_SAFE_INTEGER;

export const meteredOperations = ["chat.completions", "messages", "responses"] as const;
export type Operation = (typeof meteredOperations)[number];
export type WindowKind = "session" | "week" | "month";
export const windowKinds: readonly WindowKind[] = ["session", "week", "month"];
export type BillingSource = "plan" | "extra";

/** Limits of windows. Null does not limit: the window then takes up to `window_units_max`. */
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

/** The limits and the use of a key or a team at the instant of a decision. The ledger does not count rates. */
export interface SubjectReading {
  subject: "key" | "team";
  windows: WindowReadings;
  concurrentRequests: number | null;
  running: number;
}

/** The extra usage of the billing month. A null cap does not limit. */
export interface ExtraReading {
  enabled: boolean;
  capUnits: number | null;
  used: number;
  held: number;
}

/** All that an organization has in use at one moment. */
export interface UsageReading {
  windows: WindowReadings;
  extra: ExtraReading;
  /** Requests that are open. */
  running: number;
  /** The store's clock. */
  at: Date;
}

/** Facts that every record has, whatever became of its request. */
export interface RequestFacts {
  /** `req_` + UUIDv7 hex; stands in one command of a batch. */
  requestId: string;
  organizationId: string;
  keyId: string;
  operation: Operation;
  /** Public model id. */
  model: string;
  stream: boolean;
  prices: Prices;
}

export interface Admit extends RequestFacts {
  verb: "admit";
  limits: UsageLimits;
  /** Upper estimate of the input, at the dearest input price. */
  inputUnits: number;
  /** The output step, and what it may shrink to when a window has less left, both in tokens at the output price. */
  outputTokens: number;
  outputTokens_min: number;
  lease_ms: number;
}
/**
 * Carries the new total, so that a command sent twice adds nothing. Granted is as much of it as there is room for. Where
 * the limits are lower than they were, that is less than is held: what it does not need at least is given back.
 */
export interface Grow {
  verb: "grow";
  requestId: string;
  organizationId: string;
  /** 1, 2, … of one request: one that comes twice, or was overtaken on its way, takes nothing back. */
  number: number;
  limits: UsageLimits;
  unitsTotal: number;
  /** Less than this in all is of no use: then the answer is `full`. */
  unitsTotal_min: number;
}
/** Absolute counts that only rise; extends the lease of a row that exists. */
export interface Checkpoint {
  verb: "checkpoint";
  requestId: string;
  organizationId: string;
  /** 1, 2, … of one request: one that was overtaken on its way changes no count. */
  number: number;
  usage: Usage;
  lease_ms: number;
}
export type Outcome = "completed" | "cancelled" | "failed" | "refused";
/** Ends a request. Where it was never admitted, its record keeps an admission that comes late from running. */
export interface Settle extends RequestFacts {
  verb: "settle";
  limits: UsageLimits;
  usage: Usage;
  /** The cost of the usage at the admitted prices. The ledger charges the part that fits under every limit. */
  units: number;
  outcome: Outcome;
  stoppedBy: "usage_window" | null;
  errorCode: string | null;
  /** Facts for operators: the upstream that served, the number of attempts, and the time of the first part. */
  route: {
    upstream: string;
    attempts: number;
    firstPart_ms: number | null;
    /** Each attempt; left out where there was one, at an engine that its upstream's name tells. */
    tried?: readonly { upstream: string; replica?: string; outcome: string; ms: number }[];
  } | null;
  /** The engine's report where it was not accepted as it came, for operators. */
  reportRejected: RejectedReport | null;
}
export type Command = Admit | Grow | Checkpoint | Settle;

export interface Granted {
  /** Units held in all. */
  units: number;
  outputTokens: number;
  source: BillingSource;
  windows: WindowReadings;
  /** The key and then the team, where they are limited; absent where neither is. */
  subjects?: SubjectReading[];
  /** The team that the key is in, limited or not; left out: none. */
  teamId?: string;
  /** The store's clock at the decision. */
  at: Date;
}
export type AdmitAnswer =
  | ({ answer: "granted" } & Granted)
  | ({ answer: "exhausted" | "reserved" } & Shortage)
  | { answer: "concurrency"; windows: WindowReadings; subjects?: SubjectReading[]; at: Date }
  /** A record with this id stands already. */
  | { answer: "over" }
  /** There is no such organization. */
  | { answer: "unknown" };
/**
 * The organization's windows in which the least hold has no room beside settled use (`exhausted`), or only beside what
 * others hold (`reserved`); the one that resets last first. None, where only the key or its team has no room.
 */
export interface Shortage {
  kinds: WindowKind[];
  windows: WindowReadings;
  subjects?: SubjectReading[];
  extra: ExtraReading;
  at: Date;
}
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
  /** One transaction; resolves when it is durable. Commands of one request id are carried out in their order. */
  run(commands: readonly Command[]): Promise<Answer[]>;
  /**
   * Settles holds whose lease has lapsed, `limit` at most, marked `recovered`. Where the store's clock does not read what it
   * may, it settles none. Leases that lie further ahead than they can, because the clock was set back, are shortened.
   * Rejects when the store is away.
   */
  recover(limit: number, clock?: ClockRange): Promise<Recovered>;
  /** The windows in force now; an idle session reads used 0 and a reset five hours from now. Rejects for an unknown id. */
  windows(organizationId: string, limits: UsageLimits): Promise<WindowReadings>;
  /** The limits and the use of this key and then of its team, where they are limited. */
  budgets(organizationId: string, keyId: string): Promise<SubjectReading[]>;
  /** The same and more, for operators. */
  reading(organizationId: string, limits: UsageLimits): Promise<UsageReading>;
  receipt(organizationId: string, requestId: string): Promise<Receipt | null>;
  /** Finds a request of any organization: for operators, never for a key. */
  receiptOfAny(requestId: string): Promise<Receipt | null>;
  /** Reads what was recorded since the last time, and adds it to the roll-ups. One node of the fleet does it. */
  rollUp(): Promise<void>;
  /**
   * Rolls up, compares the windows and days that may have changed, and seals those that have ended. One node of the fleet
   * does it; the others learn what it found.
   */
  audit(): Promise<Audit>;
  /**
   * All totals and roll-ups of a year against the sums that they must equal: empty when they agree. Of sealed windows and
   * days the seal counts; a full check reads all records instead, and compares them with what the audit log's chain says of
   * them. Rejects where another full check is under way.
   */
  check(isFull?: boolean): Promise<LedgerDifference[]>;
  /** The windows and days that a check trusts unless it is full. */
  sealed(): Promise<Sealed>;
  /** Confirmed settlements that the store did not have any more. */
  lost(): Promise<Lost>;
  /** The store's clock. */
  now(): Promise<Date>;
  /** The usage of a span by groups. It equals the records at one instant. */
  report(query: ReportQuery): Promise<UsageReport>;
  /**
   * A new anchor for weeks and months, from the end of the running month on: answers when that is; null: no such
   * organization.
   */
  setAnchor(organizationId: string, anchorAt: Date): Promise<Date | null>;
  /**
   * A compensating entry of an operator: adds units to one window of now, or takes some away, down to nothing. Answers what
   * was added; null: no such organization, or no session is open. `entryId` has a request's form; sent twice, it counts once.
   */
  adjust(entryId: string, organizationId: string, kind: WindowKind | "extra", units: number): Promise<number | null>;
  /** Makes room for the records of coming months and drops those that are no longer kept. Keeps nobody waiting. */
  maintain(): Promise<Upkeep>;
  close(): Promise<void>;
}

/** The readings that the store's clock may have if nobody has set it. */
export interface ClockRange {
  earliest: Date;
  latest: Date;
}

export interface Recovered {
  /** How many holds. */
  settled: number;
  /** The store's clock. */
  at: Date;
}

export interface Upkeep {
  /** Coming months whose records have their place already. */
  monthsAhead: number;
  /** The work that could not be done at once because somebody else held a lock. The next run tries again. */
  putOff: string[];
}

export interface Audit {
  /** The differences that this look found; empty where another node looked. */
  differences: LedgerDifference[];
  /** How many the last look of any node found. */
  differing: number;
  /** Ended windows that are not sealed yet. */
  sealsBehind: number;
}

export interface Sealed {
  windows: number;
  /** The number of records that were summed for the seals. */
  records: number;
  /** Days whose roll-ups were compared with their records, and these. */
  days: number;
  dayRecords: number;
}

export interface LedgerDifference {
  /** Null for `pass` and `chain`, which belong to no organization. */
  organizationId: string | null;
  /** UUID of the key or team of that organization; null: it is the organization's own. */
  subjectId: string | null;
  /**
   * `extra` is the extra usage of a billing month; `running` counts open requests, and has no window; `hour` and `day` are
   * the roll-ups of a day, by hours and in one. `pass` are the records that an entry of the audit log vouches for, and
   * `chain` says that the log's chain is broken behind one.
   */
  kind: WindowKind | "extra" | "running" | "hour" | "day" | "pass" | "chain";
  /** The instant at which the entry of the audit log was written, for `pass` and `chain`. */
  startsAt: Date | null;
  /** The number of the entry of the audit log; for `pass` and `chain`. */
  entry?: number | null;
  /** The total in the book, and the sum of the records' charges. */
  used: number;
  recorded: number;
  /**
   * The total in the book, and the sum of the running requests' holds (of `running`: their number; of `hour` and `day`: the
   * tokens that were rolled up, and those of the records; of `pass` how many records there were, and are).
   */
  held: number;
  holding: number;
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
  /** Null where the request was given up before it was admitted. */
  windows: Record<WindowKind, ReceiptWindow> | null;
  route: Settle["route"];
  reportRejected: RejectedReport | null;
}

export interface ReceiptWindow {
  startsAt: Date;
  resetAt: Date;
  limit: number | null;
  usedBefore: number;
  /** Right after the settlement; null while it runs. */
  usedAfter: number | null;
}
