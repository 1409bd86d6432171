/**
 * The usage of a span of time by groups, from roll-ups and from the records that are in no roll-up yet, all read at one
 * instant. So the sum of a report equals the sum of the records (docs/design/metering.md, Roll-ups).
 */

/** The groups in the order of a report's columns. A query names at most one of the last three, which are periods. */
export const reportGroups = [
  "organization",
  "team",
  "person",
  "key",
  "model",
  "operation",
  "outcome",
  "hour",
  "day",
  "month",
] as const;
export type ReportGroup = (typeof reportGroups)[number];

export interface ReportQuery {
  /**
   * The beginning of the half-open span. A request counts in the hour (UTC) in which it was admitted. Both ends of the
   * span are the start of an hour.
   */
  from: Date;
  to: Date;
  by: readonly ReportGroup[];
  /**
   * The time zone of the days and months by which to group, which all begin at full hours in UTC; absent or null: UTC.
   */
  zone?: string | null | undefined;
  /** The organization whose usage counts; null: all organizations. */
  organizationId: string | null;
  /** Counts only usage with keys of this person; absent or null: with any. */
  personId?: string | null | undefined;
  /** Counts only usage in this team, with this key, or of this model; absent: all. */
  teamId?: string | undefined;
  keyId?: string | undefined;
  model?: string | undefined;
  /** Returns only this number of rows, those with the highest cost; absent: all. */
  largest?: number | undefined;
  /**
   * Returns only this number of groups, those with the highest cost in the whole span. The other groups are one row for
   * each period. Absent: all groups.
   */
  groups_max?: number | undefined;
  rows_max: number;
}

export interface ReportMeasures extends ReportCounts, ReportCosts {}

interface ReportCounts {
  /** The number of inference requests that have ended. */
  requests: number;
  inputTokens: number;
  cachedInputTokens: number;
  cacheWriteTokens: number;
  outputTokens: number;
  /** The part of the output tokens that was reasoning. */
  reasoningTokens: number;
}

/** Costs in nanos. Sums are exact beyond 2^53, too. */
interface ReportCosts {
  /** The charges, including the entries that an operator added to the month. */
  nanos: bigint;
  /** The part of the nanos that was extra usage. */
  extraNanos: bigint;
  unchargedNanos: bigint;
  /** The nanos that were charged for each kind of token. */
  inputNanos: bigint;
  cachedInputNanos: bigint;
  cacheWriteNanos: bigint;
  outputNanos: bigint;
}

/** A row of a report. A group's field is null unless the report is by that group. */
export interface ReportRow extends ReportMeasures {
  /**
   * The start of the hour, day or month (UTC). For a day or month of a time zone: its local date as if it were in UTC.
   */
  startsAt: Date | null;
  /** The organization. `slug` is null if the organization no longer exists. */
  organization: { id: string; slug: string | null; name: string | null } | null;
  /** The key's team when the request was admitted. `id` is null if the key was in no team. */
  team: { id: string | null; name: string | null } | null;
  /**
   * The person who owns the key. `id` is null if no person owns it. `name`: the name, or else the e-mail address; null
   * if the person was forgotten.
   */
  person: { id: string | null; name: string | null } | null;
  /**
   * The key. `id` is null in entries that an operator added, and `name` also if the key no longer exists. `labels`: the
   * key's current labels.
   */
  key: { id: string | null; name: string | null; labels: Record<string, string> } | null;
  model: string | null;
  operation: string | null;
  outcome: string | null;
  /** Set for the row that sums all groups beyond `groups_max`. Its group fields are null. */
  isOthers?: true;
}

export interface UsageReport {
  /** The instant of the reading, by the store's clock. */
  at: Date;
  /** The rows, the largest first if `largest` is set, else in no order. Null if there are more than `rows_max`. */
  rows: ReportRow[] | null;
  /** The sum of all rows, also of those that are left out. Null if there are no rows. */
  total: ReportMeasures | null;
  rowsLeftOut: number;
  /** The requests that were admitted in the span and still run, and the nanos that they hold. They are in no row. */
  running: { requests: number; heldNanos: bigint };
}

export const reportCounts = [
  "requests",
  "inputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "outputTokens",
  "reasoningTokens",
] as const satisfies readonly (keyof ReportCounts)[];

export const reportCosts = [
  "nanos",
  "extraNanos",
  "unchargedNanos",
  "inputNanos",
  "cachedInputNanos",
  "cacheWriteNanos",
  "outputNanos",
] as const satisfies readonly (keyof ReportCosts)[];

/** The sum of rows. Pure. */
export function totalOf(rows: readonly ReportMeasures[]): ReportMeasures {
  const total = {} as ReportMeasures;
  for (const name of reportCounts) total[name] = rows.reduce((sum, row) => sum + row[name], 0);
  for (const name of reportCosts) total[name] = rows.reduce((sum, row) => sum + row[name], 0n);
  return total;
}
