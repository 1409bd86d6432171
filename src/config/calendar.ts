/** The calendar of organizations that are created without one, from the section `metering`. Pure. */
import type { Calendar } from "../admin/store/calendar.ts";
import { filled } from "./settings/row.ts";
import { calendar, type Sections } from "./settings/sections.ts";

export function calendarOf({ calendar: written }: Sections["metering"]): Calendar | null {
  if (!written) return null;
  const { zone, week_starts: weekStarts, month_starts: monthStarts } = filled(calendar.properties, written);
  return { zone, weekStarts, monthStarts };
}
