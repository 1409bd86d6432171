// When usage windows begin and end, said plainly: the oracle that the store's SQL and the histories' judge are held to. A
// window is a function of the organization's anchor, or of the session's opening, and an instant; nothing is swept or
// zeroed. Instants are milliseconds since the epoch, fractions allowed; windows are half-open, in UTC.

export interface Interval {
  startsAt_ms: number;
  endsAt_ms: number;
}

/** An anchor, and from when on it counts. The first one of an organization counts from -Infinity. */
export interface Anchor {
  at_ms: number;
  weekFrom_ms: number;
  monthFrom_ms: number;
}

export const session_ms = 5 * 3_600_000;
const week_ms = 7 * 86_400_000;

/** The session that is open at an instant; null: idle. `openedAt_ms` is the last opening, null if there was none. */
export function sessionAt(openedAt_ms: number | null, instant_ms: number): Interval | null {
  if (openedAt_ms === null || instant_ms >= openedAt_ms + session_ms) return null;
  return { startsAt_ms: openedAt_ms, endsAt_ms: openedAt_ms + session_ms };
}

/** `[anchor + 7d·k, anchor + 7d·(k+1))`. */
export function weekOf(anchor_ms: number, instant_ms: number): Interval {
  const startsAt_ms = anchor_ms + Math.floor((instant_ms - anchor_ms) / week_ms) * week_ms;
  return { startsAt_ms, endsAt_ms: startsAt_ms + week_ms };
}

/** Calendar months from the anchor itself, the day clamped to the month's end (31 January, 28 February, 31 March). */
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

/** The week in force: of the anchor that counts by then, begun no earlier than that one took over. */
export function weekAt(anchors: readonly Anchor[], instant_ms: number): Interval {
  const anchor = latest(anchors, (one) => one.weekFrom_ms, instant_ms);
  const week = weekOf(anchor.at_ms, instant_ms);
  return { ...week, startsAt_ms: Math.max(week.startsAt_ms, anchor.weekFrom_ms) };
}

export function monthAt(anchors: readonly Anchor[], instant_ms: number): Interval {
  const anchor = latest(anchors, (one) => one.monthFrom_ms, instant_ms);
  const month = monthOf(anchor.at_ms, instant_ms);
  return { ...month, startsAt_ms: Math.max(month.startsAt_ms, anchor.monthFrom_ms) };
}

/**
 * The anchors after a new one was set: it counts from the end of the running month, for weeks from the first end of a
 * week after that, so that no open window's reset moves. One that did not count yet is replaced.
 */
export function withAnchor(anchors: readonly Anchor[], anchor_ms: number, now_ms: number): Anchor[] {
  const counting = anchors.filter((one) => one.monthFrom_ms <= now_ms);
  const monthFrom_ms = monthAt(counting, now_ms).endsAt_ms;
  const week = weekAt(counting, monthFrom_ms);
  const weekFrom_ms = week.startsAt_ms === monthFrom_ms ? monthFrom_ms : week.endsAt_ms;
  return [...counting, { at_ms: anchor_ms, monthFrom_ms, weekFrom_ms }];
}

/** Later rows win where two begin to count at once. */
function latest(anchors: readonly Anchor[], from: (anchor: Anchor) => number, instant_ms: number): Anchor {
  let found: Anchor | undefined;
  for (const one of anchors) if (from(one) <= instant_ms && (!found || from(one) >= from(found))) found = one;
  if (!found) throw new RangeError("no anchor counts at this instant: the first one counts from -Infinity");
  return found;
}
