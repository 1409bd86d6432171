/**
 * Chooses the tables from which a report is summed. Totals are sums of whole days or months. If one kind of totals
 * distinguishes the groups of the report, its totals are used for the whole periods in the span; the roll-ups of days
 * or hours are used for the rest (docs/design/metering.md, Totals). Pure.
 */
import type { ReportGroup, ReportQuery } from "../../admin/store/report.ts";

/** A half-open range: `from` is in it, and `to` is not. */
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
  /**
   * The totals to sum. `others` is null, unless the sum of all months of a key is read instead of `ranges`; it then has
   * the ranges to subtract from that sum.
   */
  total: { kind: TotalKind; ranges: Range[]; others: Range[] | null };
  rollUps: RollUps;
  /**
   * The hours in those totals, and in whole days of roll-ups, that belong to another day or month in the zone of the
   * report than in UTC. They are subtracted from the UTC period and added to the period of the zone.
   */
  moved: Range[];
}

/** The first moment of a day or month, in UTC and in the zone of the report. */
export interface Beginning {
  inUtc: Date;
  inZone: Date;
}

/**
 * The ranges that are read from the roll-ups. Days are read as a whole. Hours are read of days that are only partly in
 * the span, or if the report is by hours.
 */
type RollUps = Record<"usage_day" | "usage_hour", Range[]>;

/**
 * The kinds of totals: of a day of all organizations, of a month of one organization, or of a month of a key in a team.
 */
type TotalKind = "day" | "organization" | "key";

const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

const groupsOf: Record<TotalKind, readonly ReportGroup[]> = {
  day: ["model", "operation", "outcome", "day", "month"],
  organization: ["organization", "model", "operation", "outcome", "month"],
  key: ["organization", "team", "person", "key", "month"],
};

/** The kind of total with the fewest rows that distinguishes the groups of the query; null if none does. */
export function totalFor(query: ReportQuery): TotalKind | null {
  const told = [...query.by, ...filteredBy(query)];
  const kinds = ["day", "organization", "key"] as const;
  return kinds.find((kind) => told.every((group) => groupsOf[kind].includes(group))) ?? null;
}

/** The groups that the query limits to one value. */
function filteredBy({ organizationId, teamId, personId, keyId, model }: ReportQuery): ReportGroup[] {
  const filters = { organization: organizationId, team: teamId, person: personId, key: keyId, model };
  return (Object.keys(filters) as (keyof typeof filters)[]).filter((group) => filters[group]);
}

/** Whether the report is by days or months of a zone. Roll-ups of days, and totals, are of days in UTC. */
export function isByZone({ by, zone }: Pick<ReportQuery, "by" | "zone">): boolean {
  return zone != null && (by.includes("day") || by.includes("month"));
}

/** All totals begin between `beginning` and `end`, except the sums of all months, which begin at `infinity`. */
const beginning = new Date(0);
const end = new Date("9999-01-01T00:00:00Z");

/**
 * Chooses the sources. `rolled`: the days with roll-ups, of all months that the span touches, the earliest first; other
 * days have no usage. A total is used if all days that it contains so far are in the span, so even the running month's
 * total may be used. `months`: the number of months with roll-ups. `beginnings`: the first moments of the zone's days
 * or months, if the report is by days or months of a zone.
 */
export function sourcesOf(
  query: ReportQuery,
  rolled: readonly Rolled[],
  months: number,
  beginnings: readonly Beginning[],
): ReportSources {
  const { from, to } = query;
  if (beginnings.length > beginnings_max)
    return { total: noTotal, rollUps: { usage_day: [], usage_hour: [{ from, to }] }, moved: [] };
  const sources = inUtc(query, rolled, months);
  return { ...sources, moved: movedIn([...sources.total.ranges, ...sources.rollUps.usage_day], beginnings) };
}

const noTotal: ReportSources["total"] = { kind: "day", ranges: [], others: null };

/**
 * A report with more beginnings of days than this reads the roll-ups of all its hours. For so many days, finding the
 * hours between midnight in the zone and midnight in UTC would take as long as reading all of them.
 */
const beginnings_max = 130;

/** The hours between the beginning of a day in the zone and its beginning in UTC, as far as they are in `ranges`. */
function movedIn(ranges: readonly Range[], beginnings: readonly Beginning[]): Range[] {
  return beginnings.flatMap(({ inUtc, inZone }) => {
    const between = inUtc < inZone ? { from: inUtc, to: inZone } : { from: inZone, to: inUtc };
    return ranges.flatMap((range) => common(between, range) ?? []);
  });
}

function inUtc(query: ReportQuery, rolled: readonly Rolled[], months: number): Omit<ReportSources, "moved"> {
  const { from, to, by } = query;
  const kind = totalFor(query);
  if (kind === null) return { total: noTotal, rollUps: rollUpsOf(query, [{ from, to }]) };
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
    // Two days that follow each other in this list have no usage between them, so their ranges are joined.
    if (last === ranges) ranges.at(-1)!.to = range.to;
    else ranges.push(range);
    last = ranges;
  }
  const isMost = kind === "key" && !by.includes("month") && months - whole.size + 1 < whole.size;
  return { total: { kind, ranges: total, others: isMost ? besides(total) : null }, rollUps: rollUpsOf(query, left) };
}

function rollUpsOf({ by }: ReportQuery, ranges: readonly Range[]): RollUps {
  if (by.includes("hour")) return { usage_day: [], usage_hour: [...ranges] };
  const parts = ranges.map(dividedByDays);
  return { usage_day: parts.flatMap(({ days }) => days), usage_hour: parts.flatMap(({ hours }) => hours) };
}

/** The whole days of a range, and the hours before and after them. */
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

/** The ranges of all time that these ranges do not cover. */
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
