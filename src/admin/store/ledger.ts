/** The ledger as administrators read it; src/core/store/ledger.ts is what requests ask of it. */
import type { ExtraReading, Receipt, UsageLimits, WindowReadings } from "../../core/store/ledger.ts";
import type { RecordedLosses } from "../../features/upkeep/store/lost.ts";
import type { ReportQuery, UsageReport } from "./report.ts";

export interface LedgerAdministration {
  /** All that the organization has in use, for operators. */
  reading(organizationId: string, limits: UsageLimits): Promise<UsageReading>;
  /** The receipt of a request of any organization: for operators, never for a key. */
  receiptOfAny(requestId: string): Promise<Receipt | null>;
  /** The sealed windows and days (see `audit` of Books). A check trusts their stored sums unless it is full. */
  sealed(): Promise<Sealed>;
  /** The settlements that the store had confirmed and no longer has. */
  lost(): Promise<RecordedLosses>;
  /** Returns the time by the store's clock. */
  now(): Promise<Date>;
  /** The usage in a span of time, by groups. It equals the sum of the records at one instant. */
  report(query: ReportQuery): Promise<UsageReport>;
}

/** Everything that an organization has in use at one moment. */
export interface UsageReading {
  windows: WindowReadings;
  extra: ExtraReading;
  /** The number of open requests, and the limit on it: the given limit, or the raise of it (a temporary increase). */
  running: number;
  concurrentRequests: number | null;
  /** The store's clock at the reading. */
  at: Date;
}

export interface Sealed {
  windows: number;
  /** The number of records that were summed for the seals. */
  records: number;
  /** The number of days whose roll-ups were compared with their records. */
  days: number;
  dayRecords: number;
}
