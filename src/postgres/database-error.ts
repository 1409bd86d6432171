/** The failure of a query. The message never contains a password. */
export class DatabaseError extends Error {
  override name = "DatabaseError";
  constructor(
    message: string,
    /**
     * A SQLSTATE such as `23505`, or one of ours: `unavailable` (no connection, or it was lost), `silent` (no answer in
     * time), `in_use` (another process holds the data folder).
     */
    readonly code: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** Whose fault it is: the connection's, or the statement's. */
export function faultOf(error: unknown): "connection" | "statement" {
  const isAway = error instanceof DatabaseError && (error.code === "unavailable" || error.code === "silent");
  return isAway ? "connection" : "statement";
}
