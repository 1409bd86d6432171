/** The time range of a report: its parts, the range before it, and the ranges that people choose most. Pure. */
import { day_ms, daysAfter, monthsAfter, Zone } from "./zone.ts";

/** A half-open time range, in the form that a report takes. */
export interface Range {
  from: string;
  to: string;
  from_ms: number;
  to_ms: number;
  zone: Zone;
}

export type Unit = "hour" | "day" | "month";

/** One bar of a chart. */
export interface Bucket {
  /** The name that the rows of a report give to this hour, day or month. */
  key: string;
  from_ms: number;
  to_ms: number;
  /** The short text below the bar; `title` is the full text. */
  label: string;
  title: string;
}

const hour_ms = 3_600_000;
const hours_max = 49;
const days_max = 100;

interface Asked {
  from: string | null;
  to: string | null;
  zone: Zone;
  now_ms: number;
}

/**
 * The range that the address names. Without start and end, it is the whole current month, so that its end is forecast;
 * with only a start, it ends with today. If the start or the end is an instant, the days are those of UTC.
 */
export function rangeOf({ zone, now_ms, ...asked }: Asked): Range {
  const [from, to] = [asked.from, asked.to].map((text) => (Number.isNaN(Date.parse(text ?? "")) ? null : text)) as [
    string | null,
    string | null,
  ];
  const own = [from, to].some((text) => text?.includes("T")) ? new Zone("UTC") : zone;
  const today = own.dateOf(now_ms);
  const first = from ?? monthsAfter(today, 0);
  const end = to ?? (from === null ? monthsAfter(today, 1) : daysAfter(today, 1));
  return { from: first, to: end, from_ms: startOf(first, own), to_ms: startOf(end, own), zone: own };
}

function startOf(text: string, zone: Zone): number {
  if (/^\d{4}-\d\d$/.test(text)) return zone.startOf(`${text}-01`);
  return /^\d{4}-\d\d-\d\d$/.test(text) ? zone.startOf(text) : Date.parse(text);
}

/**
 * The range in the form that a report by these groups takes: with days or months, it names dates and the zone;
 * otherwise, two instants.
 */
export function spanAsked({ from, to, from_ms, to_ms, zone }: Range, by: readonly string[]): Span {
  if (!by.some((group) => group === "day" || group === "month"))
    return { from: new Date(from_ms).toISOString(), to: new Date(to_ms).toISOString() };
  return { from, to, ...(zone.name === "UTC" ? {} : { zone: zone.name }) };
}

interface Span {
  from: string;
  to: string;
  zone?: string;
}

export function unitOf({ from_ms, to_ms }: Range): Unit {
  const span_ms = to_ms - from_ms;
  if (span_ms <= hours_max * hour_ms) return "hour";
  return span_ms <= days_max * day_ms ? "day" : "month";
}

export function bucketsOf(range: Range): Bucket[] {
  const unit = unitOf(range);
  if (!(range.to_ms > range.from_ms)) return [];
  if (unit === "hour") return hoursOf(range);
  const { zone, from_ms, to_ms } = range;
  const next = unit === "day" ? daysAfter : monthsAfter;
  const buckets: Bucket[] = [];
  const begun = zone.dateOf(from_ms);
  for (let date = unit === "day" ? begun : monthsAfter(begun, 0); zone.startOf(date) < to_ms; date = next(date, 1))
    buckets.push({
      key: unit === "day" ? date : date.slice(0, 7),
      from_ms: Math.max(from_ms, zone.startOf(date)),
      to_ms: Math.min(to_ms, zone.startOf(next(date, 1))),
      ...named(date, unit),
    });
  return buckets;
}

function named(date: string, unit: "day" | "month"): Pick<Bucket, "label" | "title"> {
  const words = (how: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...how }).format(Date.parse(`${date}T00:00:00Z`));
  return unit === "day"
    ? {
        label: words({ day: "numeric", month: "short" }),
        title: words({ weekday: "short", day: "numeric", month: "short", year: "numeric" }),
      }
    : { label: words({ month: "short" }), title: words({ month: "long", year: "numeric" }) };
}

function hoursOf({ from_ms, to_ms, zone }: Range): Bucket[] {
  const first_ms = Math.floor(from_ms / hour_ms) * hour_ms;
  return Array.from({ length: Math.ceil((to_ms - first_ms) / hour_ms) }, (_, n) => {
    const at_ms = first_ms + n * hour_ms;
    const clock = new Date(zone.clock_ms(at_ms)).toISOString();
    const [date, label] = [clock.slice(0, 10), clock.slice(11, 16)];
    // Where clocks are put back, one hour has the name of the hour before.
    const again = zone.clock_ms(at_ms) === zone.clock_ms(at_ms - hour_ms) ? " again" : "";
    const title = `${named(date, "day").title}, ${label}${again}`;
    return { key: new Date(at_ms).toISOString(), from_ms: at_ms, to_ms: at_ms + hour_ms, label, title };
  });
}

/** The range of the same length that ends where this one begins; for whole months, the same number of months. */
export function rangeBefore(range: Range): Range {
  const { zone, from_ms, to_ms } = range;
  const [first, end] = [zone.dateOf(from_ms), zone.dateOf(to_ms)];
  const areDates = zone.startOf(first) === from_ms && zone.startOf(end) === to_ms;
  if (!areDates) {
    const instant = (at_ms: number) => new Date(at_ms).toISOString();
    const before_ms = from_ms - (to_ms - from_ms);
    return { ...range, from: instant(before_ms), to: instant(from_ms), from_ms: before_ms, to_ms: from_ms };
  }
  const isOfMonths = first.endsWith("-01") && end.endsWith("-01");
  const begun = isOfMonths
    ? monthsAfter(first, -monthsBetween(first, end))
    : daysAfter(first, -daysBetween(first, end));
  return { ...range, from: begun, to: first, from_ms: zone.startOf(begun), to_ms: from_ms };
}

/**
 * The part of the previous range to compare with: as long as the part of this range that has passed, cut to full hours.
 * If this range is over, it is the whole previous range.
 */
export function sameSoFar(range: Range, before: Range, now_ms: number): Range {
  const so_far_ms = Math.floor(Math.max(0, now_ms - range.from_ms) / hour_ms) * hour_ms;
  const to_ms = before.from_ms + so_far_ms;
  if (now_ms >= range.to_ms || to_ms >= before.to_ms) return before;
  return { ...before, to_ms };
}

const daysBetween = (one: string, other: string) => Math.round((Date.parse(other) - Date.parse(one)) / day_ms);

function monthsBetween(one: string, other: string): number {
  const count = (date: string) => Number(date.slice(0, 4)) * 12 + Number(date.slice(5, 7));
  return count(other) - count(one);
}

interface Preset {
  name: string;
  from: string | null;
  to: string | null;
}

export function presetsOf(today: string): Preset[] {
  const days = (name: string, from: number, to = 1) => ({
    name,
    from: daysAfter(today, from),
    to: daysAfter(today, to),
  });
  const month = (back: number) => monthsAfter(today, -back).slice(0, 7);
  const monday = -((new Date(`${today}T00:00:00Z`).getUTCDay() + 6) % 7);
  return [
    days("Today", 0),
    days("Yesterday", -1, 0),
    days("7 days", -6),
    days("Last week", monday - 7, monday),
    days("30 days", -29),
    { name: "This month", from: null, to: null },
    { name: "Last month", from: month(1), to: month(0) },
    { name: "The month before", from: month(2), to: month(1) },
  ];
}

/**
 * The days of a range in words, its last one included: `1 – 30 Nov 2026`; `1 – 29 Nov 2026 until 07:00`, if the last
 * day is not over.
 */
export function rangeWords({ from_ms, to_ms, zone }: Range): string {
  const startsDay = (at_ms: number) => zone.startOf(zone.dateOf(at_ms)) === at_ms;
  const written = (how: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat("en-GB", { timeZone: zone.name, ...how });
  const days = { day: "numeric", month: "short", year: "numeric" } as const;
  const minutes = { hour: "2-digit", minute: "2-digit" } as const;
  if (!startsDay(from_ms)) return written({ ...days, ...minutes }).formatRange(from_ms, to_ms);
  const whole = written(days).formatRange(from_ms, Math.max(from_ms, to_ms - 1));
  return startsDay(to_ms) ? whole : `${whole} until ${written(minutes).format(to_ms)}`;
}
