/** The failure of a query. The message never contains a password. */
export class DatabaseError extends Error {
  override name = "DatabaseError";
  constructor(
    message: string,
    /**
     * A SQLSTATE such as `23505`, or one of ours: `unavailable` (no connection, or it was lost), `silent` (no answer in
     * time), `tls` (it is not encrypted as the address asks, or one side does not trust the other), `address` (that of
     * the database is malformed), `in_use` (another process holds the data folder).
     */
    readonly code: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** Whose fault it is: the connection's, or the statement's. */
export function faultOf(error: unknown): "connection" | "statement" {
  const isAway = error instanceof DatabaseError && ["unavailable", "silent", "tls"].includes(error.code);
  return isAway ? "connection" : "statement";
}

/**
 * Why a database cannot be used now although the same attempt may succeed later, as a predicate without addresses. Null:
 * somebody has to change the address, the database or this build first.
 */
export function whyAway(error: unknown): string | null {
  return (error instanceof DatabaseError && passing.get(error.code)) || null;
}

const passing = new Map([
  ["unavailable", "cannot be reached"],
  ["silent", "does not answer"],
  ["53300", "has no free connection"],
  ["57P01", "is stopping"],
  ["57P02", "is restarting"],
  ["57P03", "is starting or stopping"],
  // PgBouncer says this of a server that it cannot reach, among others.
  ["08P01", "cannot be reached by its pooler"],
]);
