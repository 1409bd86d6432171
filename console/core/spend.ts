/** The spend in a report, as a chart and in words: exact to the nano, however it is drawn. Pure. */
import type { Static } from "typebox";
import type { VerbNamed } from "../../src/admin/management/verbs.ts";
import { moneyOf, nanosOf } from "./money.ts";
import type { Bucket, Unit } from "./range.ts";

/** The report as the client receives it. This is not the type of client.ts, because importing that needs a browser. */
export type Report = Static<VerbNamed<"reportUsage">["answers"]>;
export type Row = Report["rows"][number];

/** The subjects that a report can be grouped by, besides time. */
export const subjects = ["organization", "team", "person", "key", "model", "operation", "outcome"] as const;
export type Subject = (typeof subjects)[number];

export interface Series {
  /** The id of the subject. Null: no team, or a service key. */
  id: string | null;
  name: string;
  isOthers: boolean;
  /** The cost in each bucket. */
  nanos: bigint[];
  total: bigint;
}

const absent: Partial<Record<Subject, string>> = {
  team: "no team",
  person: "service keys",
  key: "adjustments",
  model: "adjustments",
};

export function idOf(row: Partial<Row>, by: Subject): string | null {
  if (by === "organization") return row.organization ?? row.organization_id ?? null;
  if (by === "team") return row.team_id ?? null;
  if (by === "person") return row.person_id ?? null;
  return (by === "key" ? row.key_id : row[by]) || null;
}

export function nameOf(row: Partial<Row>, by: Subject): string {
  if (row.others) return "others";
  return row[by] || idOf(row, by) || (absent[by] ?? "none");
}

/**
 * Divides a report's rows over time into series, one for each value of the subject. The series that cost most comes
 * first, and `others` last. Without a subject, all rows are one series.
 */
export function seriesOf({ rows }: Pick<Report, "rows">, by: Subject | null, buckets: readonly Bucket[]): Series[] {
  const places = new Map(buckets.map(({ key }, at) => [key, at]));
  const found = new Map<string, Series>();
  for (const row of rows) {
    const id = row.others || by === null ? null : idOf(row, by);
    const key = row.others ? "others" : `one ${id}`;
    const series = found.get(key) ?? {
      id,
      name: by === null ? "all" : nameOf(row, by),
      isOthers: row.others === true,
      nanos: buckets.map(() => 0n),
      total: 0n,
    };
    const nanos = nanosOf(row.cost.total);
    const at = places.get(row.hour ?? row.day ?? row.month ?? "");
    if (at !== undefined) series.nanos[at]! += nanos;
    series.total += nanos;
    found.set(key, series);
  }
  return [...found.values()].sort((one, other) => {
    if (one.isOthers !== other.isOthers) return one.isOthers ? 1 : -1;
    if (one.total !== other.total) return one.total < other.total ? 1 : -1;
    return one.name < other.name ? -1 : 1;
  });
}

export function totalsOf(series: readonly Series[], buckets: readonly Bucket[]): bigint[] {
  return buckets.map((_, at) => series.reduce((sum, { nanos }) => sum + nanos[at]!, 0n));
}

/** How many of the last hours, days or months the forecast is based on. */
const pace_of: Record<Unit, number> = { hour: 24, day: 7, month: 3 };
export const paceWords: Record<Unit, string> = { hour: "24 hours", day: "7 days", month: "3 months" };

export interface Forecast {
  total: bigint;
  /** The cost that is still expected, for each bucket. */
  ahead: bigint[];
}

/**
 * Forecasts the cost of the range from the mean of its last hours, days or months that are over. Null: the whole range
 * is over, or its first hour, day or month is not over yet.
 */
export function forecastOf(
  totals: readonly bigint[],
  buckets: readonly Bucket[],
  unit: Unit,
  now_ms: number,
): Forecast | null {
  if (buckets.length === 0 || now_ms >= buckets.at(-1)!.to_ms) return null;
  const over = totals.filter((_, at) => buckets[at]!.to_ms <= now_ms).slice(-pace_of[unit]);
  if (over.length === 0) return null;
  const pace = over.reduce((sum, nanos) => sum + nanos, 0n) / BigInt(over.length);
  const ahead = totals.map((nanos, at) => {
    if (buckets[at]!.to_ms <= now_ms) return 0n;
    return pace > nanos ? pace - nanos : 0n;
  });
  const spent = totals.reduce((sum, nanos) => sum + nanos, 0n);
  return { total: ahead.reduce((sum, nanos) => sum + nanos, spent), ahead };
}

/** The change of the spend in words: `+12 %`, `−4 %`, `the same`. Null: there was no spend before. */
export function changeWords(now: bigint, before: bigint): string | null {
  if (before <= 0n) return null;
  const tenths = Number(((now - before) * 1000n) / before);
  if (tenths === 0) return now === before ? "the same" : now > before ? "+0.1 %" : "−0.1 %";
  const share = Math.abs(tenths) < 100 ? (Math.abs(tenths) / 10).toFixed(1) : String(Math.round(Math.abs(tenths) / 10));
  return `${tenths > 0 ? "+" : "−"}${share} %`;
}

export const moneyIn = ({ currency }: Pick<Report, "currency">, nanos: bigint) => moneyOf(nanos, currency);
