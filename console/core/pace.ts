/** Whether a budget lasts until it resets, if it is used at the same pace as so far. Pure. */

export interface Budget {
  used: number;
  limit: number;
  from_ms: number;
  to_ms: number;
}

export interface Pace {
  /** The share of the budget's time that has passed, from 0 to 100. */
  elapsed_percent: number;
  /** The share of the limit that will be used when the budget resets; null: it is too early to say. */
  end_percent: number | null;
  /** When the budget will be full; null: not before it resets. */
  full_ms: number | null;
  isFull: boolean;
}

/**
 * The share of a budget's time that must have passed before a forecast is made. Earlier, a single request would decide
 * it.
 */
const said_min = 0.02;

export function paceOf({ used, limit, from_ms, to_ms }: Budget, now_ms: number): Pace {
  const elapsed = Math.min(1, Math.max(0, (now_ms - from_ms) / (to_ms - from_ms)));
  const isFull = limit <= 0 || used >= limit;
  const isEarly = elapsed < said_min;
  const full_ms = isEarly || isFull || used <= 0 ? null : from_ms + ((now_ms - from_ms) * limit) / used;
  return {
    elapsed_percent: elapsed * 100,
    end_percent: isEarly || limit <= 0 ? null : (used / elapsed / limit) * 100,
    full_ms: full_ms !== null && full_ms < to_ms ? full_ms : null,
    isFull,
  };
}

export function paceWords({ end_percent, full_ms, isFull }: Pace, to_ms: number, now_ms: number): string {
  const day = (at_ms: number) => dayWords(at_ms, now_ms);
  if (isFull) return `full until ${day(to_ms)}`;
  if (end_percent === null) return `resets on ${day(to_ms)}`;
  if (full_ms !== null) return `at this pace full on ${day(full_ms)}`;
  const share = end_percent > 0 && end_percent < 1 ? "less than 1" : String(Math.floor(end_percent));
  return `at this pace ${share} % on ${day(to_ms)}`;
}

const day_ms = 86_400_000;

/** A day in words: `24 November`; with the hour if it is less than a day away. */
function dayWords(at_ms: number, now_ms: number): string {
  const isSoon = at_ms - now_ms < day_ms;
  return new Intl.DateTimeFormat("en-GB", {
    day: "numeric",
    month: "long",
    ...(isSoon ? { hour: "2-digit", minute: "2-digit" } : {}),
  }).format(at_ms);
}
