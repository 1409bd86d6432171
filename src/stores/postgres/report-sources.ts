/**
 * Chooses the sums that a report is read from: totals, where one kind of them tells its groups apart and has whole periods
 * of its span, and for the rest the roll-ups of days or hours (docs/design/metering.md, Totals). Pure.
 */
import type { ReportGroup, ReportQuery } from "../../core/store/report.ts";

/** Half-open: `from` is in the range, and `to` is not. */
export interface Range {
  from: Date;
  to: Date;
}

/** A day that has roll-ups. */
export interface Rolled {
  startsAt: Date;
  isTotalled: boolean;
}

export interface ReportSources {
  /** `others`: the ranges to subtract from the sum of all months of a key, if that is read in place of `ranges`; else null. */
  total: { kind: TotalKind; ranges: Range[]; others: Range[] | null };
  rollUps: RollUps;
}

/** Days are read whole, and hours where a day is not in the span as a whole, or the report is by them. */
type RollUps = Record<"usage_day" | "usage_hour", Range[]>;

/** A total is of a day of all organizations, a month of one organization, or a month of a key in a team. */
type TotalKind = "day" | "organization" | "key";

const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

const groupsOf: Record<TotalKind, readonly ReportGroup[]> = {
  day: ["model", "operation", "outcome", "day", "month"],
  organization: ["organization", "model", "operation", "outcome", "month"],
  key: ["organization", "team", "person", "key", "month"],
};

/** The kind of total with the fewest rows that tells the groups of the query apart; null: none does. */
export function totalFor(query: ReportQuery): TotalKind | null {
  const { by, zone } = query;
  if (zone && isByDays(by)) return null;
  const told = [...by, ...filteredBy(query)];
  const kinds = ["day", "organization", "key"] as const;
  return kinds.find((kind) => told.every((group) => groupsOf[kind].includes(group))) ?? null;
}

/** The groups of which the query has one alone. */
function filteredBy({ organizationId, teamId, personId, keyId, model }: ReportQuery): ReportGroup[] {
  const filters = { organization: organizationId, team: teamId, person: personId, key: keyId, model };
  return (Object.keys(filters) as (keyof typeof filters)[]).filter((group) => filters[group]);
}

/** Roll-ups of days, and totals, are of days in UTC. */
export const isByDays = (by: readonly ReportGroup[]) => by.includes("day") || by.includes("month");

/** All totals lie between these instants, except the sums of all months. */
const beginning = new Date(0);
const end = new Date("9999-01-01T00:00:00Z");

/**
 * `rolled`: the days with roll-ups of all months that the span touches, the earliest first; any other has no usage. A
 * total counts if all days that it has are in the span: so that of this month does, although the month goes on.
 * `months`: how many have roll-ups.
 */
export function sourcesOf(query: ReportQuery, rolled: readonly Rolled[], months: number): ReportSources {
  const { from, to, by } = query;
  const kind = totalFor(query);
  if (kind === null)
    return { total: { kind: "day", ranges: [], others: null }, rollUps: rollUpsOf(query, [{ from, to }]) };
  const periodOf = kind === "day" ? dayOf : monthOf;
  const isWhole = (day: Rolled) => day.isTotalled && day.startsAt >= from && dayOf(day.startsAt).to <= to;
  const parts = new Set(rolled.filter((day) => !isWhole(day)).map((day) => periodOf(day.startsAt).from.getTime()));
  const total: Range[] = [];
  const left: Range[] = [];
  const whole = new Set<number>();
  let last: Range[] | null = null;
  for (const { startsAt } of rolled) {
    const period = periodOf(startsAt);
    const isTotal = !parts.has(period.from.getTime());
    const range = isTotal ? period : common(dayOf(startsAt), query);
    if (!range) continue;
    if (isTotal) whole.add(period.from.getTime());
    const ranges = isTotal ? total : left;
    // Nothing lies between two days that follow one another here.
    if (last === ranges) ranges.at(-1)!.to = range.to;
    else ranges.push(range);
    last = ranges;
  }
  const isMost = kind === "key" && !by.includes("month") && months - whole.size + 1 < whole.size;
  return { total: { kind, ranges: total, others: isMost ? besides(total) : null }, rollUps: rollUpsOf(query, left) };
}

function rollUpsOf({ by, zone }: ReportQuery, ranges: readonly Range[]): RollUps {
  if (by.includes("hour") || (zone && isByDays(by))) return { usage_day: [], usage_hour: [...ranges] };
  const parts = ranges.map(dividedByDays);
  return { usage_day: parts.flatMap(({ days }) => days), usage_hour: parts.flatMap(({ hours }) => hours) };
}

/** Its whole days, and the hours before and after them. */
function dividedByDays({ from, to }: Range): { days: Range[]; hours: Range[] } {
  const first = new Date(Math.ceil(from.getTime() / day_ms) * day_ms);
  const last = new Date(Math.floor(to.getTime() / day_ms) * day_ms);
  if (first >= last) return { days: [], hours: [{ from, to }] };
  const around = [
    { from, to: first },
    { from: last, to },
  ];
  return { days: [{ from: first, to: last }], hours: around.filter((part) => part.from < part.to) };
}

/** The ranges before, between and after these. */
function besides(ranges: readonly Range[]): Range[] {
  const starts = [beginning, ...ranges.map(({ to }) => to)];
  const ends = [...ranges.map(({ from }) => from), end];
  return starts.map((from, at) => ({ from, to: ends[at]! }));
}

function common(one: Range, other: Range): Range | null {
  const from = new Date(Math.max(one.from.getTime(), other.from.getTime()));
  const to = new Date(Math.min(one.to.getTime(), other.to.getTime()));
  return from < to ? { from, to } : null;
}

function dayOf(at: Date): Range {
  return { from: at, to: new Date(at.getTime() + day_ms) };
}

function monthOf(at: Date): Range {
  const month = (count: number) => new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + count));
  return { from: month(0), to: month(1) };
}
