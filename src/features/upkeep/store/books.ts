/** The periodic work on the ledger (src/core/store/ledger.ts): checks, roll-ups and partitions. */
import type { WindowKind } from "../../../core/store/ledger.ts";

export interface Books {
  /** Adds the records since the last roll-up to the roll-ups. One node of the fleet does it. */
  rollUp(): Promise<void>;
  /**
   * Updates the roll-ups, and checks the windows and days that may have changed. Seals those that have ended: their
   * sums are stored, and are not computed again. One node of the fleet does it; the others learn the result.
   */
  audit(): Promise<Audit>;
  /**
   * Compares all totals and roll-ups of a year with the sums that they must equal; empty if they agree. A sealed window
   * or day is compared only with the sum that was stored when it ended. A full check reads all records instead, and
   * compares them with what the chain of the audit log says about them. Rejects while another full check runs.
   */
  check(isFull?: boolean): Promise<LedgerDifference[]>;
  /**
   * Creates the partitions for the records of coming months, and drops those that are no longer kept. Blocks no other
   * session.
   */
  maintain(): Promise<Upkeep>;
}

export interface Upkeep {
  /** The number of coming months that have a partition for their records. */
  monthsAhead: number;
  /** The tasks that were not done because another session held a lock. The next run tries again. */
  putOff: string[];
  /** The error with which the work broke off; absent: it did not. The months are those that there are nevertheless. */
  failure?: unknown;
}

export interface Audit {
  /** The differences that this check found; empty if another node checked. */
  differences: LedgerDifference[];
  /** The number of differences that the last check of any node found. */
  differing: number;
  /** The number of ended windows that are not sealed yet. */
  sealsBehind: number;
}

export interface LedgerDifference {
  /** The organization's id; null for `pass`, `chain` and the totals of all organizations. */
  organizationId: string | null;
  /**
   * The UUID of the key, member or team of the organization, or of limits for models; null for the organization itself.
   */
  subjectId: string | null;
  /**
   * The sum that differs. `extra`: the extra usage of a billing month. `running`: the number of open requests, which
   * has no window. `hour`, `day`: the roll-ups of a day by hours and as a whole. `total`: the totals of a month,
   * against its days. `pass`: the records that an entry of the audit log attests. `chain`: the log's chain is broken
   * after an entry.
   */
  kind: WindowKind | "extra" | "running" | "hour" | "day" | "total" | "pass" | "chain";
  /** The start of the window or day; for `pass` and `chain`, when the entry of the audit log was written. */
  startsAt: Date | null;
  /** The number of the entry of the audit log, for `pass` and `chain`. */
  entry?: number | null;
  /** `used`: the total in the tables; `recorded`: the sum of charges in the records. */
  used: number;
  recorded: number;
  /**
   * The two numbers `held` and `holding`:
   * - For most kinds, `held`: the sum that the tables say is held; `holding`: the sum of the holds of running requests.
   * - For `running`, both are numbers of requests.
   * - For `hour`, `day` and `total`: the tokens in the roll-ups, and those in the records.
   * - For `pass`: the number of records that the audit log names, and the number of these records now.
   */
  held: number;
  holding: number;
}
