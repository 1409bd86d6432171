/** The failure of a query. The message never contains a password. */
export class DatabaseError extends Error {
  override name = "DatabaseError";
  constructor(
    message: string,
    /**
     * A SQLSTATE such as `23505`, or one of our own codes: `unavailable` (no connection, or it was lost), `silent` (no
     * answer in time), `tls` (not encrypted as the address asks, or one side does not trust the other), `address` (the
     * address is malformed), `in_use` (another process has the data folder open).
     */
    readonly code: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** SQLSTATE 25006: the server takes no writes, because it is a standby or was made read-only. */
const readOnly = "25006";
export const isReadOnly = (error: unknown): boolean => error instanceof DatabaseError && error.code === readOnly;

export function faultOf(error: unknown): "connection" | "statement" {
  const isAway = error instanceof DatabaseError && ["unavailable", "silent", "tls"].includes(error.code);
  return isAway ? "connection" : "statement";
}

/**
 * The reason why the database cannot be used now, for an error after which the same attempt may succeed later. The
 * reason completes a sentence that begins with "the database", and has no addresses. Null for an error that a person
 * has to correct first, by a change of the address, the database or this build.
 */
export function whyAway(error: unknown): string | null {
  return (error instanceof DatabaseError && passing.get(error.code)) || null;
}

const passing = new Map([
  ["unavailable", "cannot be reached"],
  ["silent", "does not answer"],
  // A standby refuses writes until it is promoted, or until the name in the address leads to the primary.
  [readOnly, "is read-only"],
  ["53300", "has no free connection"],
  ["57P01", "is stopping"],
  ["57P02", "is restarting"],
  ["57P03", "is starting or stopping"],
  // PgBouncer reports this code if it cannot reach the server, and for other errors.
  ["08P01", "cannot be reached by its pooler"],
]);
