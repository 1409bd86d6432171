/**
 * CALENDARS: an organization's weeks and months may begin by the clocks of a time zone. Only the store computes when
 * (docs/design/usage.md, Calendars).
 */
export const weekDays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] as const;

export interface Calendar {
  /** A name of the IANA time zone database. */
  zone: string;
  weekStarts: (typeof weekDays)[number];
  /** The day of the month on which a month begins; in a shorter month, its last day. */
  monthStarts: number;
}

/**
 * When a window that is shorter, because the calendar changed, would have begun in its full length; null: it has its
 * full length.
 */
export type WholeStart = number | null | undefined;

/** The limit of a shortened window: its share of the whole limit, rounded up to a whole nano. Pure. */
export function inProportion(limit: number | null, starts_ms: number, ends_ms: number, whole: WholeStart) {
  if (limit === null || whole == null) return limit;
  const [length, wholeLength] = [BigInt(ends_ms - starts_ms), BigInt(ends_ms - whole)];
  return Number((BigInt(limit) * length + wholeLength - 1n) / wholeLength);
}
