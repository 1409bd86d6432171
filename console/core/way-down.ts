/**
 * Where a row of a report leads: to the requests that it adds up, or to the days of a month. The address keeps the
 * organization and the span of the report, so what it shows adds up to the row. Pure.
 */

/** The members of a row by which its parts are found. */
export interface Grouped {
  organization?: string | null;
  team_id?: string | null;
  person_id?: string | null;
  key_id?: string | null;
  /** Empty: an entry of an operator has none. */
  model?: string | null;
  operation?: string | null;
  outcome?: string | null;
  day?: string;
  month?: string;
}

/** The report that has the row: its group, its organization (null: all), and its span as two instants. */
export interface Reported {
  by: string;
  organization: string | null;
  from: string;
  to: string;
}

interface Span {
  from_ms: number;
  to_ms: number;
}

const day_ms = 86_400_000;

/** Null: no list has the parts of this row. */
export function wayDown(row: Grouped, { by, organization, from, to }: Reported): string | null {
  const whole = { from_ms: Date.parse(from), to_ms: Date.parse(to) };
  const narrowed: Record<string, string> = organization === null ? {} : { organization };
  if (by === "month" && row.month)
    return address("/usage", { ...narrowed, by: "day" }, common(whole, monthOf(row.month)));
  if (by === "day" && row.day) return address("/requests", narrowed, common(whole, dayOf(row.day)));
  const value = membersOf[by]?.(row);
  return value ? address("/requests", { ...narrowed, [by]: value }, whole) : null;
}

/** The columns that name the parts of a row in the filter of its group. */
const membersOf: Record<string, (row: Grouped) => string | null | undefined> = {
  organization: ({ organization }) => organization,
  team: ({ team_id }) => team_id,
  person: ({ person_id }) => person_id,
  key: ({ key_id }) => key_id,
  model: ({ model }) => model,
  // An operator's entry is no request.
  operation: ({ operation }) => (operation === "adjustment" ? null : operation),
  outcome: ({ outcome }) => outcome,
};

function address(path: string, filters: Record<string, string>, { from_ms, to_ms }: Span): string {
  return `${path}?${new URLSearchParams({ ...filters, from: written(from_ms), to: written(to_ms) })}`;
}

/** The report may begin or end within a day or a month. */
function common(one: Span, other: Span): Span {
  return { from_ms: Math.max(one.from_ms, other.from_ms), to_ms: Math.min(one.to_ms, other.to_ms) };
}

function dayOf(day: string): Span {
  const from_ms = Date.parse(`${day}T00:00:00Z`);
  return { from_ms, to_ms: from_ms + day_ms };
}

function monthOf(month: string): Span {
  const [year = 0, number = 0] = month.split("-").map(Number);
  return { from_ms: Date.UTC(year, number - 1), to_ms: Date.UTC(year, number) };
}

/** As somebody would type it: a whole day by its date. */
function written(at_ms: number): string {
  const iso = new Date(at_ms).toISOString();
  return at_ms % day_ms === 0 ? iso.slice(0, 10) : iso;
}
