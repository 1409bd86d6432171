/** Writes instants for people: in UTC, or in a time zone that this runtime knows. Pure. */

/** An instant to the second: `2026-11-22 03:00:00 UTC`. */
export function instant(at: Date | null): string | null {
  return at ? `${at.toISOString().slice(0, 19).replace("T", " ")} UTC` : null;
}

/** An instant to the minute, without its zone: for a column whose heading names the zone. */
export function minute(at: Date | null): string | null {
  return at ? at.toISOString().slice(0, 16).replace("T", " ") : null;
}

/**
 * The instant at which something starts anew, written for a person who waits for it: `1 December 00:00 (UTC)`, rounded
 * up to a whole minute. All error messages use this form.
 */
export function moment(at: Date, zone = "UTC"): string {
  return instantIn(new Date(Math.ceil(at.getTime() / 60_000) * 60_000), zone, { year: false });
}

export function day(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** Whether this runtime knows a zone of this name. An offset such as +01:00 is no name. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** An instant in a zone: `1 December 2026 00:00 (Europe/Berlin)`. `year: false` leaves out the year. */
export function instantIn(at: Date, zone: string, { year = true } = {}): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    day: "numeric",
    month: "long",
    ...(year && { year: "numeric" }),
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
  const date = [part.day, part.month, ...(year ? [part.year] : [])].join(" ");
  return `${date} ${part.hour}:${part.minute} (${zone})`;
}
