/** The days of a time zone. Pure. */

const hour_ms = 3_600_000;
export const day_ms = 24 * hour_ms;

export class Zone {
  readonly #format: Intl.DateTimeFormat;

  /** `name` is the name of a time zone in the IANA database. */
  constructor(readonly name: string) {
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
  }

  /** The local time of an instant in this zone, as if it were UTC. */
  clock_ms(at_ms: number): number {
    const parts = Object.fromEntries(this.#format.formatToParts(at_ms).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts as Record<string, number>;
    return Date.UTC(year, month - 1, day, hour, minute, second) + (((at_ms % 1000) + 1000) % 1000);
  }

  /** The local date of an instant: `2026-11-24` */
  dateOf(at_ms: number): string {
    return new Date(this.clock_ms(at_ms)).toISOString().slice(0, 10);
  }

  /** The first moment of a date. */
  startOf(date: string): number {
    const clock_ms = Date.parse(`${date}T00:00:00Z`);
    const near_ms = clock_ms - (this.clock_ms(clock_ms) - clock_ms);
    const start_ms = clock_ms - (this.clock_ms(near_ms) - near_ms);
    // Where clocks are put forward at midnight, the day begins at that change.
    return this.clock_ms(start_ms) < clock_ms ? near_ms : start_ms;
  }

  /**
   * Whether each of the zone's days between two instants begins at a full hour in UTC, since usage is added up by these
   * hours.
   */
  hasFullHours(from_ms: number, to_ms: number): boolean {
    const month_ms = 28 * day_ms;
    const count = Math.ceil(Math.max(0, to_ms - from_ms) / month_ms);
    const instants = [...Array.from({ length: count }, (_, n) => from_ms + n * month_ms), to_ms];
    return instants.every((at_ms) => (this.clock_ms(at_ms) - at_ms) % hour_ms === 0);
  }
}

export function daysAfter(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * day_ms).toISOString().slice(0, 10);
}

/** The first day of the month that is this many months later. */
export function monthsAfter(date: string, months: number): string {
  const [year = 0, month = 0] = date.split("-").map(Number);
  return new Date(Date.UTC(year, month - 1 + months)).toISOString().slice(0, 10);
}
