// A reference model of when usage windows begin and end, for the store's SQL and for the judge (checker of all answers)
// of test/histories. A window is a function of the organization's anchor, or of the session's opening, and an instant;
// no job resets it. Instants are milliseconds since the epoch, fractions allowed; windows are half-open, in UTC.

import { type Calendar, weekDays } from "../../../src/admin/store/calendar.ts";
import { dayBegins, localDate } from "./zones-model.ts";

export interface Interval {
  startsAt_ms: number;
  endsAt_ms: number;
  /** The instant at which the window would have begun without a change of the calendar in the middle of it. */
  wholeAt_ms?: number | undefined;
}

/**
 * An anchor or a calendar, and the time from which it applies. The first one of an organization applies from -Infinity.
 * A calendar first has one shorter window of each kind, a bridge that reaches to its first boundary, unless a boundary
 * is just there.
 */
export interface Anchor {
  at_ms: number;
  weekFrom_ms: number;
  monthFrom_ms: number;
  calendar?: Calendar | null;
  weekBridge?: Interval | null | undefined;
  monthBridge?: Interval | null | undefined;
}

export const session_ms = 5 * 3_600_000;
const week_ms = 7 * 86_400_000;

/** The session that is open at an instant, or null. `openedAt_ms` is the last opening, null if there was none. */
export function sessionAt(openedAt_ms: number | null, instant_ms: number): Interval | null {
  if (openedAt_ms === null || instant_ms >= openedAt_ms + session_ms) return null;
  return { startsAt_ms: openedAt_ms, endsAt_ms: openedAt_ms + session_ms };
}

/** The week that contains an instant: `[anchor + 7d·k, anchor + 7d·(k+1))`. */
export function weekOf(anchor_ms: number, instant_ms: number): Interval {
  const startsAt_ms = anchor_ms + Math.floor((instant_ms - anchor_ms) / week_ms) * week_ms;
  return { startsAt_ms, endsAt_ms: startsAt_ms + week_ms };
}

/**
 * The month that contains an instant: calendar months from the anchor itself, the day clamped to the month's end (31
 * January, 28 February, 31 March).
 */
export function monthOf(anchor_ms: number, instant_ms: number): Interval {
  const anchor = new Date(anchor_ms);
  const instant = new Date(Math.floor(instant_ms));
  const months =
    (instant.getUTCFullYear() - anchor.getUTCFullYear()) * 12 + instant.getUTCMonth() - anchor.getUTCMonth();
  const begun = monthsAfter(anchor, months) > instant_ms ? months - 1 : months;
  return { startsAt_ms: monthsAfter(anchor, begun), endsAt_ms: monthsAfter(anchor, begun + 1) };
}

function monthsAfter(anchor: Date, months: number): number {
  const year = anchor.getUTCFullYear();
  const month = anchor.getUTCMonth() + months;
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const timeOfDay_ms = anchor.getTime() - Date.UTC(year, anchor.getUTCMonth(), anchor.getUTCDate());
  return Date.UTC(year, month, Math.min(anchor.getUTCDate(), lastDay)) + timeOfDay_ms;
}

/**
 * The window from the last boundary at or before an instant to the first one after it. A local date may occur twice,
 * but its boundary only once.
 */
function between(boundaries: readonly number[], instant_ms: number): Interval {
  const next = boundaries.findIndex((at_ms) => at_ms > instant_ms);
  return { startsAt_ms: boundaries[next - 1]!, endsAt_ms: boundaries[next]! };
}

const day_ms = 86_400_000;

export function localWeekOf({ zone, weekStarts }: Calendar, instant_ms: number): Interval {
  const days = Array.from({ length: 22 }, (_, index) => localDate(zone, instant_ms) + (index - 10) * day_ms);
  const begun = days.filter((day) => weekDays[(new Date(day).getUTCDay() + 6) % 7] === weekStarts);
  return between(
    begun.map((day) => dayBegins(zone, day)),
    instant_ms,
  );
}

export function localMonthOf({ zone, monthStarts }: Calendar, instant_ms: number): Interval {
  const today = new Date(localDate(zone, instant_ms));
  const days = [-2, -1, 0, 1, 2].map((months) => {
    const [year, month] = [today.getUTCFullYear(), today.getUTCMonth() + months];
    return Date.UTC(year, month, Math.min(monthStarts, new Date(Date.UTC(year, month + 1, 0)).getUTCDate()));
  });
  return between(
    days.map((day) => dayBegins(zone, day)),
    instant_ms,
  );
}

const weekBy = (anchor: Anchor, instant_ms: number) =>
  anchor.calendar ? localWeekOf(anchor.calendar, instant_ms) : weekOf(anchor.at_ms, instant_ms);
const monthBy = (anchor: Anchor, instant_ms: number) =>
  anchor.calendar ? localMonthOf(anchor.calendar, instant_ms) : monthOf(anchor.at_ms, instant_ms);

/**
 * The window in force at an instant. Until the end of its calendar's bridge that is the bridge itself. Later the window
 * begins no earlier than the bridge's end or, without a bridge, than the time from which its anchor applies.
 */
function after(bridge: Interval | null | undefined, from_ms: number, window: Interval, instant_ms: number): Interval {
  if (bridge && instant_ms < bridge.endsAt_ms) return bridge;
  return { ...window, startsAt_ms: Math.max(window.startsAt_ms, bridge?.endsAt_ms ?? from_ms) };
}

/**
 * The week in force: that of the anchor that applies at the instant. It begins no earlier than the time from which that
 * anchor applies.
 */
export function weekAt(anchors: readonly Anchor[], instant_ms: number): Interval {
  const anchor = latest(anchors, (one) => one.weekFrom_ms, instant_ms);
  return after(anchor.weekBridge, anchor.weekFrom_ms, weekBy(anchor, instant_ms), instant_ms);
}

export function monthAt(anchors: readonly Anchor[], instant_ms: number): Interval {
  const anchor = latest(anchors, (one) => one.monthFrom_ms, instant_ms);
  return after(anchor.monthBridge, anchor.monthFrom_ms, monthBy(anchor, instant_ms), instant_ms);
}

/**
 * The anchors after a new one was set. Months count from the new anchor as soon as the running month ends, weeks from
 * the first end of a week at that time or later, so that no open window's reset moves. An anchor that does not apply
 * yet is replaced.
 */
export function withAnchor(anchors: readonly Anchor[], anchor_ms: number, now_ms: number): Anchor[] {
  const counting = anchors.filter((one) => one.monthFrom_ms <= now_ms);
  const monthFrom_ms = monthAt(counting, now_ms).endsAt_ms;
  const week = weekAt(counting, monthFrom_ms);
  const weekFrom_ms = week.startsAt_ms === monthFrom_ms ? monthFrom_ms : week.endsAt_ms;
  return [...counting, { at_ms: anchor_ms, monthFrom_ms, weekFrom_ms }];
}

/** The zone by whose clocks months are counted. */
export function zoneAt(anchors: readonly Anchor[], instant_ms: number): string | null {
  return latest(anchors, (one) => one.monthFrom_ms, instant_ms).calendar?.zone ?? null;
}

/** Whether months are counted by a calendar, or will be: then no anchor can be set. */
export function hasCalendar(anchors: readonly Anchor[], now_ms: number): boolean {
  const counting = anchors.filter((one) => one.monthFrom_ms <= now_ms);
  const next = anchors.filter((one) => one.monthFrom_ms > now_ms);
  return Boolean(counting.at(-1)?.calendar ?? next[0]?.calendar);
}

/**
 * The anchors after the calendar was changed: the running week and month end as they would have ended without the
 * change. Null if another change is still pending.
 */
export function withCalendar(anchors: readonly Anchor[], calendar: Calendar | null, now_ms: number): Anchor[] | null {
  const counting = anchors.filter((one) => one.monthFrom_ms <= now_ms);
  if (counting.length < anchors.length && hasCalendar(anchors, now_ms)) return null;
  const { at_ms } = anchors.at(-1)!;
  const weekFrom_ms = weekAt(counting, now_ms).endsAt_ms;
  const monthFrom_ms = monthAt(counting, now_ms).endsAt_ms;
  const made = { at_ms, calendar, weekFrom_ms, monthFrom_ms };
  const weekBridge = bridge(weekBy(made, weekFrom_ms), weekFrom_ms);
  const monthBridge = bridge(monthBy(made, monthFrom_ms), monthFrom_ms);
  return [...counting, { ...made, weekBridge, monthBridge }];
}

function bridge(whole: Interval, from_ms: number): Interval | null {
  if (whole.startsAt_ms === from_ms) return null;
  return { startsAt_ms: from_ms, endsAt_ms: whole.endsAt_ms, wholeAt_ms: whole.startsAt_ms };
}

/**
 * The limit of a window. If a change of calendar made the window shorter than others, its limit is in proportion, and
 * at least 1.
 */
export function limitIn(limit: number, { startsAt_ms, endsAt_ms, wholeAt_ms }: Interval): number {
  if (wholeAt_ms === undefined || !Number.isFinite(limit)) return limit;
  const [share, whole] = [BigInt(limit) * BigInt(endsAt_ms - startsAt_ms), BigInt(endsAt_ms - wholeAt_ms)];
  return Number(share / whole) + (share % whole === 0n ? 0 : 1);
}

/** The anchor that applies at an instant. If two begin to apply at the same time, the later one in the list wins. */
function latest(anchors: readonly Anchor[], from: (anchor: Anchor) => number, instant_ms: number): Anchor {
  let found: Anchor | undefined;
  for (const one of anchors) if (from(one) <= instant_ms && (!found || from(one) >= from(found))) found = one;
  if (!found) throw new RangeError("no anchor counts at this instant: the first one counts from -Infinity");
  return found;
}
