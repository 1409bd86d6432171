/**
 * The room `postgres`: Directory, Administration and Ledger over one SQL. This file is what its two drivers have in
 * common: `server.ts` (postgres.js against a server) and `embedded.ts` (PGlite in a data folder). Nothing else differs
 * between them: parameters go out, and values come back, as `values.ts` says.
 */
import type { PgDatabase } from "drizzle-orm/pg-core";
import { drizzle, type PgRemoteDatabase } from "drizzle-orm/pg-proxy";
import * as schema from "../../db/schema.ts";

type ResultKind = PgRemoteDatabase extends PgDatabase<infer Kind> ? Kind : never;
/** Drizzle, typed on db/schema.ts. Its own `transaction` is not available: use the database's. */
export type Drizzle = PgDatabase<ResultKind, typeof schema>;

/** What works on the whole database and inside a transaction alike. */
export interface Transaction {
  kind: "postgres" | "pglite";
  /** One statement, prepared once per connection, pipelined; rows with values as `values.ts` says. */
  query<Row>(text: string, params?: readonly unknown[]): Promise<Row[]>;
  /** Several statements, no parameters, no rows; one implicit transaction. */
  exec(sql: string): Promise<void>;
  /**
   * Inside a transaction: a savepoint. Rolls back when `work` throws, and throws the same. `statement_ms`: how long a
   * statement in it may take, where that is more than usual; PGlite sets no limit.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: { statement_ms?: number }): Promise<T>;
  /** Inside a transaction it is sent by the commit. `channel`: lower-case letters and `_`. Payload: less than 8,000 bytes. */
  notify(channel: string, payload: string): Promise<void>;
  drizzle: Drizzle;
}

export interface Database extends Transaction {
  /**
   * A connection of its own, on which queries are sent in the order of the calls, each its own transaction, without
   * waiting for each other. `settings` hold for this connection (`{ plan_cache_mode: "force_generic_plan" }`); on PGlite,
   * which has one connection, for the whole database.
   */
  lane(settings?: Record<string, string>): Promise<Lane>;
  /**
   * Calls `onMessage` for each payload, and `onConnect` whenever listening begins: at once, and after a lost connection,
   * when messages may have been missed. Answers how to stop.
   */
  listen(channel: string, onMessage: (payload: string) => void, onConnect?: () => void): Promise<() => Promise<void>>;
  /** Rejects unless the database answers in time. */
  ping(timeout_ms: number): Promise<void>;
  /** Lets running queries end, for a few seconds at most. */
  close(): Promise<void>;
}

export interface Lane {
  query<Row>(text: string, params?: readonly unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

/** Why a query failed. The message never carries a password. */
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

/** Rows as arrays of values, in the order of the columns. */
export type RunArrays = (text: string, params: unknown[]) => Promise<unknown[][]>;
export type RunObjects = (text: string, params: unknown[]) => Promise<unknown[]>;

/** Drizzle over a driver's two ways to run a statement; the same session for both drivers. */
export function drizzleOver(arrays: RunArrays, objects: RunObjects): Drizzle {
  return drizzle(
    async (text, params, method) => ({
      rows: method === "all" ? await arrays(text, params) : await objects(text, params),
    }),
    { schema },
  );
}

/** `promise`, or a DatabaseError after so long. What it was waiting for goes on. */
export async function answeredWithin<T>(promise: Promise<T>, timeout_ms: number, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new DatabaseError(`${what} did not answer within ${timeout_ms} ms`, "silent")),
      timeout_ms,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
