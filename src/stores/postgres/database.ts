/**
 * POSTGRES: Directory, Administration and Ledger over one SQL. This file has the common part of its two drivers:
 * `server.ts` (postgres.js with a server) and `embedded.ts` (PGlite in a data folder), which behave alike: parameters
 * and values have the form that `values.ts` describes.
 */
import { drizzle, type PgRemoteDatabase } from "drizzle-orm/pg-proxy";
import { within } from "../../core/time/cancellation.ts";
import type { ConnectionsInUse, StoreWatcher } from "../../features/telemetry/store/watcher.ts";
import { DatabaseError } from "./database-error.ts";

/** The methods that a database and a transaction have in common. */
export interface Transaction {
  kind: "postgres" | "pglite";
  /** Runs one statement, prepared once for each connection and pipelined. Values of rows: see `values.ts`. */
  query<Row>(text: string, params?: readonly unknown[]): Promise<Row[]>;
  /**
   * Runs one statement unprepared: a prepared text stays in the memory of each connection, also if it is hardly ever
   * sent again.
   */
  queryOnce<Row>(text: string, params: readonly unknown[]): Promise<Row[]>;
  /** Runs several statements in one implicit transaction, without parameters or rows. */
  exec(sql: string): Promise<void>;
  /**
   * Runs `work` in a transaction; inside one, in a savepoint. Rolls back if `work` throws, and throws the same error.
   * `statement_ms`: how long a statement may take, if that is more than usual. Few transactions with this option run at
   * a time, and others wait at most `statement_ms` for their turn. PGlite sets no limit.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: { statement_ms?: number }): Promise<T>;
  /**
   * Sends a message to listeners; inside a transaction, with the commit. `channel`: lower-case letters and `_`.
   * `payload`: less than 8,000 bytes.
   */
  notify(channel: string, payload: string): Promise<void>;
  /** Drizzle's own `transaction` is not available: use the one above. */
  drizzle: PgRemoteDatabase;
}

/** All that most functions need of a database or a transaction. */
export type Querying = Pick<Transaction, "query">;

export interface Database extends Transaction {
  /**
   * Opens a lane: a connection that only the caller uses. Its queries are sent in the order of the calls, without
   * waiting for each other, and each is its own transaction. `settings` apply to this connection (`{ plan_cache_mode:
   * "force_generic_plan" }`); on PGlite, which has one connection, to the whole database. `statement_ms`: how long a
   * statement may take, if that is more than usual; PGlite sets no limit.
   */
  lane(settings?: Record<string, string>, options?: { statement_ms?: number }): Promise<Lane>;
  /**
   * Calls `onMessage` with each payload, and `onConnect` whenever listening begins: the first time, and after each lost
   * connection, when messages may have been missed. Resolves with a function that stops listening.
   */
  listen(channel: string, onMessage: (payload: string) => void, onConnect?: () => void): Promise<() => Promise<void>>;
  /** Rejects unless the database answers in time. */
  ping(timeout_ms: number): Promise<void>;
  /** Reports each statement and connection to this watcher from now on, in place of the earlier one. */
  watch(watcher: StoreWatcher): void;
  /**
   * Resolves with the cause once the engine of the embedded database has failed: every later call fails, until another
   * process opens the folder. Absent for a server, which recovers from failures.
   */
  failed?: Promise<string>;
  /** How many of the database's connections are used now. */
  inUse(): ConnectionsInUse;
  /** Closes the database, after waiting a few seconds at most for running queries. */
  close(): Promise<void>;
}

export interface Lane {
  query<Row>(text: string, params?: readonly unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

/** One session of either driver. All errors are DatabaseErrors. */
export interface Session {
  /**
   * Runs a statement, prepared unless `isOnce`. The rows are objects, or arrays of values in the order of the columns.
   */
  run(text: string, params: readonly unknown[], form: "objects" | "arrays", isOnce?: boolean): Promise<unknown[]>;
  /** Runs several statements without parameters. */
  exec(text: string): Promise<unknown>;
}

/** The methods of a session without transactions. */
export function statementsOn(kind: Transaction["kind"], session: Session): Omit<Transaction, "transaction"> {
  const query = async <Row>(text: string, params: readonly unknown[] = []) =>
    (await session.run(text, params, "objects")) as Row[];
  return {
    kind,
    query,
    queryOnce: async <Row>(text: string, params: readonly unknown[]) =>
      (await session.run(text, params, "objects", true)) as Row[],
    async exec(text) {
      await session.exec(text);
    },
    async notify(channel, payload) {
      await query("select pg_notify($1, $2)", [channel, payload]);
    },
    drizzle: drizzle(async (text, params, method) => ({
      rows: await session.run(text, params, method === "all" ? "arrays" : "objects"),
    })),
  };
}

/**
 * Runs `work` in the open transaction of a session. Once the transaction has ended, no further statement of `work` is
 * sent.
 */
export async function inTransaction<T>(
  kind: Transaction["kind"],
  session: Session,
  work: (tx: Transaction) => Promise<T>,
  depth = 0,
): Promise<T> {
  let isOver = false;
  const opened = () => {
    if (isOver) throw new DatabaseError("the transaction is over", "25P01");
    return session;
  };
  const own: Session = {
    run: async (...statement) => opened().run(...statement),
    exec: async (text) => opened().exec(text),
  };
  const nested = async <U>(inner: (tx: Transaction) => Promise<U>): Promise<U> => {
    const name = `s${depth}`;
    await own.exec(`savepoint ${name}`);
    try {
      const value = await inTransaction(kind, own, inner, depth + 1);
      await own.exec(`release savepoint ${name}`);
      return value;
    } catch (error) {
      await own.exec(`rollback to savepoint ${name}`);
      throw error;
    }
  };
  try {
    return await work({ ...statementsOn(kind, own), transaction: nested });
  } finally {
    isOver = true;
  }
}

/** The result of `promise`; throws a DatabaseError `silent` after this time. The work itself is not stopped. */
export function answeredWithin<T>(promise: Promise<T>, timeout_ms: number, what: string): Promise<T> {
  return within(promise, timeout_ms, what, (message) => new DatabaseError(message, "silent"));
}
