/** Instants in the words of a time zone, by the rules that this runtime knows. Pure. */

/** Whether this runtime knows a zone by this name; an offset such as +01:00 is none. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** `1 December 2026 00:00 (Europe/Berlin)`. `year: false` leaves out the year, for what is near. */
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

/** How far the clocks of a zone are ahead of UTC at an instant, in milliseconds. */
export function offsetsIn(zone: string): (at: Date) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
    hourCycle: "h23",
  });
  return (at) => {
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    const local_ms = Date.UTC(part.year!, part.month! - 1, part.day, part.hour, part.minute, part.second);
    return local_ms - Math.floor(at.getTime() / 1000) * 1000;
  };
}
