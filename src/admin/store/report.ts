/**
 * The usage in a span of time by groups. A report reads roll-ups, and the records that are in no roll-up yet, at one
 * instant. So its sum equals the sum of the records (docs/design/metering.md, Roll-ups).
 */

/** The groups in the order of a report's columns. The last three are periods, of which a query names at most one. */
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
   * The time zone of the days and months by which to group; absent or null: UTC. Each of them must begin at a full hour
   * in UTC.
   */
  zone?: string | null | undefined;
  /** The organization whose usage counts; null: all organizations. */
  organizationId: string | null;
  /** Counts only usage with keys of this person; absent or null: with any key. */
  personId?: string | null | undefined;
  /** Counts only usage in this team, with this key, or of this model; absent: any. */
  teamId?: string | undefined;
  keyId?: string | undefined;
  model?: string | undefined;
  /** Returns only this number of rows, the rows with the highest cost; absent: all rows. */
  largest?: number | undefined;
  /**
   * Returns only this number of groups, the groups with the highest cost in the whole span. All other groups are summed
   * in one row for each period. Absent: all groups.
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
  /** The reasoning tokens, which are also counted in the output tokens. */
  reasoningTokens: number;
}

/** Costs in nanos, as `bigint`: sums are exact even beyond 2^53. */
interface ReportCosts {
  /** All charges, including the entries that an operator added to the month. */
  nanos: bigint;
  /** The part of `nanos` that was extra usage. */
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
  /** The start of the hour, day or month (UTC). For a day or month of a time zone: midnight UTC of its local date. */
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
   * The key. `id` and `name` are null in entries that an operator added; `name` is also null if the key no longer
   * exists. `labels`: the key's current labels.
   */
  key: { id: string | null; name: string | null; labels: Record<string, string> } | null;
  model: string | null;
  operation: string | null;
  outcome: string | null;
  /** Set for the row that sums all groups beyond `groups_max`. Its group fields are null. */
  isOthers?: true;
}

export interface UsageReport {
  /** The instant at which the report was read, by the store's clock. */
  at: Date;
  /**
   * The rows: with `largest`, the row with the highest cost first, else unordered. Null if there are more than
   * `rows_max`.
   */
  rows: ReportRow[] | null;
  /** The sum of all rows, including rows that are left out. Null if there are no rows. */
  total: ReportMeasures | null;
  rowsLeftOut: number;
  /**
   * The requests that were admitted in the span and still run, and the nanos that they hold. The rows do not count
   * them.
   */
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
