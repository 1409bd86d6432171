/**
 * The part of the ledger's interface that administration reads; src/core/store/ledger.ts is the part that inference
 * requests use.
 */
import type { ExtraReading, Receipt, UsageLimits, WindowReadings } from "../../core/store/ledger.ts";
import type { RecordedLosses } from "../../features/upkeep/store/lost.ts";
import type { ReportQuery, UsageReport } from "./report.ts";

export interface LedgerAdministration {
  /** The current usage of the organization, for operators. */
  reading(organizationId: string, limits: UsageLimits): Promise<UsageReading>;
  /** The receipt of a request, whichever organization made the request: for operators, never for a key. */
  receiptOfAny(requestId: string): Promise<Receipt | null>;
  /**
   * The counts of sealed windows and days (see `audit` of Books). A check that is not a full one trusts their stored
   * sums.
   */
  sealed(): Promise<Sealed>;
  /** The lost settlements: the store had confirmed them, but no longer has them. */
  lost(): Promise<RecordedLosses>;
  now(): Promise<Date>;
  /** The usage in a span of time, by groups. The report equals the sum of the records as they are at one instant. */
  report(query: ReportQuery): Promise<UsageReport>;
}

/** The usage of an organization at one instant. */
export interface UsageReading {
  windows: WindowReadings;
  extra: ExtraReading;
  /** The number of open requests, and the limit of that number: the given limit, or its raise (temporary increase). */
  running: number;
  concurrentRequests: number | null;
  /** The time of the reading, by the store's clock. */
  at: Date;
}

export interface Sealed {
  windows: number;
  /** The number of records whose sums the seals hold. */
  records: number;
  /** The number of sealed days: their roll-ups were compared with their records. */
  days: number;
  dayRecords: number;
}
