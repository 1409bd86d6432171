/**
 * CALENDARS: an organization's weeks and months may begin by the local time of a time zone. Only the store computes the
 * instants at which they begin (docs/design/usage.md, Calendars).
 */
export const weekDays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] as const;

export interface Calendar {
  /** A name of the IANA time zone database. */
  zone: string;
  weekStarts: (typeof weekDays)[number];
  /** The day of the month on which a month begins. A month that lacks this day begins on its last day instead. */
  monthStarts: number;
}
