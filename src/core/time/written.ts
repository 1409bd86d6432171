/** Instants in a form for people, in UTC. Pure. */

/** An instant to the second: `2026-11-22 03:00:00 UTC`. */
export function instant(at: Date | null): string | null {
  return at ? `${at.toISOString().slice(0, 19).replace("T", " ")} UTC` : null;
}

/** The same without seconds and zone, for a column whose heading names the zone. */
export function minute(at: Date | null): string | null {
  return at ? at.toISOString().slice(0, 16).replace("T", " ") : null;
}

/**
 * When something starts anew, for the person who waits for it: `1 December 00:00 (UTC)`, rounded up to a whole minute. Every
 * error has its instants from here.
 */
export function moment(at: Date, zone = "UTC"): string {
  const minutes = new Date(Math.ceil(at.getTime() / 60_000) * 60_000);
  const format = { timeZone: zone, day: "numeric", month: "long", hour: "2-digit", minute: "2-digit" } as const;
  const parts = new Intl.DateTimeFormat("en-GB", format).formatToParts(minutes);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((one) => one.type === type)!.value;
  return `${part("day")} ${part("month")} ${part("hour")}:${part("minute")} (${zone})`;
}

/** The date alone. */
export function day(at: Date): string {
  return at.toISOString().slice(0, 10);
}
