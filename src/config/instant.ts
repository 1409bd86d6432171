/** An instant of sluice.yaml: a date, which is its first moment in UTC, or a date with a time in UTC. */
export const instantPattern = "^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}:\\d{2}Z)?$";
export const instantMessage = "must be a date such as 2030-01-31, or an instant in UTC such as 2030-01-31T12:00:00Z";

/** Milliseconds since the epoch; null for a day or a time that does not exist. */
export function instantOf(written: string): number | null {
  const at_ms = Date.parse(written);
  if (Number.isNaN(at_ms)) return null;
  // Some JavaScript engines read 30 February as 2 March.
  return new Date(at_ms).toISOString().startsWith(written.slice(0, 10)) ? at_ms : null;
}
