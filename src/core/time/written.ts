/** Instants in a form for people, in UTC. Pure. */

/** An instant to the second: `2026-11-22 03:00:00 UTC`. */
export function instant(at: Date | null): string | null {
  return at ? `${at.toISOString().slice(0, 19).replace("T", " ")} UTC` : null;
}

/** The same without seconds and zone, for a column whose heading names the zone. */
export function minute(at: Date | null): string | null {
  return at ? at.toISOString().slice(0, 16).replace("T", " ") : null;
}

/** The date alone. */
export function day(at: Date): string {
  return at.toISOString().slice(0, 10);
}
