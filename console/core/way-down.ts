/**
 * Where a row of a report leads: to the requests that it adds up, or to the days of a month. The address keeps the
 * filters and the span of the report, so what it shows adds up to the row. Pure.
 */
import type { Row } from "./spend.ts";
import { day_ms, daysAfter, monthsAfter, Zone } from "./zone.ts";

/** The report that has the row: its group, what it is narrowed to, and its span as two instants. */
interface Reported {
  by: string;
  filters: Readonly<Record<string, string | null>>;
  from: string;
  to: string;
  /** The zone of its days and months; absent: UTC. */
  zone?: Zone;
}

interface Span {
  from_ms: number;
  to_ms: number;
}

/** The address of the list of requests or days that a row adds up. Null: no list shows them. */
export function wayDown(row: Partial<Row>, { by, filters, from, to, zone = new Zone("UTC") }: Reported): string | null {
  const whole = { from_ms: Date.parse(from), to_ms: Date.parse(to) };
  const set = Object.entries(filters).filter((one): one is [string, string] => one[1] !== null);
  const narrowed: Record<string, string> = Object.fromEntries(set);
  if (by === "month" && row.month) {
    const { from_ms, to_ms } = common(whole, spanOf(`${row.month}-01`, monthsAfter, zone));
    const date = (at_ms: number) => (zone.startOf(zone.dateOf(at_ms)) === at_ms ? zone.dateOf(at_ms) : written(at_ms));
    return address("/usage", { ...narrowed, by: "day", zone: zone.name }, date(from_ms), date(to_ms));
  }
  if (by === "day" && row.day) {
    const { from_ms, to_ms } = common(whole, spanOf(row.day, daysAfter, zone));
    return address("/requests", narrowed, written(from_ms), written(to_ms));
  }
  const value = membersOf[by]?.(row);
  return value
    ? address("/requests", { ...narrowed, [by]: value }, written(whole.from_ms), written(whole.to_ms))
    : null;
}

/** For each group of a report, the value by which the requests of a row are filtered. */
const membersOf: Record<string, (row: Partial<Row>) => string | null | undefined> = {
  organization: ({ organization }) => organization,
  team: ({ team_id }) => team_id,
  person: ({ person_id }) => person_id,
  key: ({ key_id }) => key_id,
  model: ({ model }) => model,
  // An adjustment by an operator is not a request, so no list of requests shows it.
  operation: ({ operation }) => (operation === "adjustment" ? null : operation),
  outcome: ({ outcome }) => outcome,
};

function address(path: string, filters: Record<string, string>, from: string, to: string): string {
  return `${path}?${new URLSearchParams({ ...filters, from, to })}`;
}

/**
 * The time that two spans share. A row's day or month may reach beyond the report, which may begin or end within it.
 */
function common(one: Span, other: Span): Span {
  return { from_ms: Math.max(one.from_ms, other.from_ms), to_ms: Math.min(one.to_ms, other.to_ms) };
}

function spanOf(date: string, next: typeof daysAfter, zone: Zone): Span {
  return { from_ms: zone.startOf(date), to_ms: zone.startOf(next(date, 1)) };
}

/** An instant as somebody would type it. The start of a day is written as its date. */
function written(at_ms: number): string {
  const iso = new Date(at_ms).toISOString();
  return at_ms % day_ms === 0 ? iso.slice(0, 10) : iso;
}
