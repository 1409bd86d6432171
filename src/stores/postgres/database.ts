/**
 * POSTGRES: Directory, Administration and Ledger over one SQL. This file has the common part of its two drivers:
 * `server.ts` (postgres.js with a server) and `embedded.ts` (PGlite in a data folder). Nothing else differs between
 * them: parameters and values have the form that `values.ts` describes.
 */
import type { PgDatabase } from "drizzle-orm/pg-core";
import { drizzle, type PgRemoteDatabase } from "drizzle-orm/pg-proxy";
import * as schema from "../../../db/schema.ts";
import type { ConnectionsInUse, StoreWatcher } from "../../core/store/watcher.ts";
import { within } from "../../core/time/deadline.ts";
import { DatabaseError } from "./database-error.ts";

type ResultKind = PgRemoteDatabase extends PgDatabase<infer Kind> ? Kind : never;
/** Drizzle, typed on db/schema.ts. Its own `transaction` is not available: use the database's. */
export type Drizzle = PgDatabase<ResultKind, typeof schema>;

/** Methods of the whole database and of a transaction alike. */
export interface Transaction {
  kind: "postgres" | "pglite";
  /** One statement, prepared once per connection, pipelined; rows with values as `values.ts` says. */
  query<Row>(text: string, params?: readonly unknown[]): Promise<Row[]>;
  /** Several statements, no parameters, no rows; one implicit transaction. */
  exec(sql: string): Promise<void>;
  /**
   * Inside a transaction: a savepoint. Rolls back if `work` throws, and throws the same. `statement_ms`: how long a
   * statement in it may take, if that is more than usual; PGlite sets no limit.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: { statement_ms?: number }): Promise<T>;
  /**
   * Inside a transaction it is sent by the commit. `channel`: lower-case letters and `_`. Payload: less than 8,000
   * bytes.
   */
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
   * Calls `onMessage` for each payload, and `onConnect` whenever listening begins: at once, and after a lost
   * connection, when messages may have been missed. Returns how to stop.
   */
  listen(channel: string, onMessage: (payload: string) => void, onConnect?: () => void): Promise<() => Promise<void>>;
  /** Rejects unless the database answers in time. */
  ping(timeout_ms: number): Promise<void>;
  /** Reports each statement and connection to this watcher from now on, instead of the earlier one. */
  watch(watcher: StoreWatcher): void;
  /** The current use of its connections. */
  inUse(): ConnectionsInUse;
  /** Lets running queries end, for a few seconds at most. */
  close(): Promise<void>;
}

export interface Lane {
  query<Row>(text: string, params?: readonly unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

/** One session of either driver. Errors are DatabaseErrors. */
export interface Session {
  /** Rows as objects, or as arrays of values in the order of the columns. */
  run(text: string, params: readonly unknown[], form: "objects" | "arrays"): Promise<unknown[]>;
  /** Several statements without parameters. */
  exec(text: string): Promise<unknown>;
}

/** The methods of a session, except for transactions. */
export function statementsOn(kind: Transaction["kind"], session: Session): Omit<Transaction, "transaction"> {
  const query = async <Row>(text: string, params: readonly unknown[] = []) =>
    (await session.run(text, params, "objects")) as Row[];
  return {
    kind,
    query,
    async exec(text) {
      await session.exec(text);
    },
    async notify(channel, payload) {
      await query("select pg_notify($1, $2)", [channel, payload]);
    },
    drizzle: drizzle(
      async (text, params, method) => ({
        rows: await session.run(text, params, method === "all" ? "arrays" : "objects"),
      }),
      { schema },
    ),
  };
}

/** Runs `work` on a session with an open transaction. Once it has ended, no further statement of it is sent. */
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

/** Returns `promise`, or throws a DatabaseError `silent` after this time. The work itself goes on. */
export function answeredWithin<T>(promise: Promise<T>, timeout_ms: number, what: string): Promise<T> {
  return within(promise, timeout_ms, what, (message) => new DatabaseError(message, "silent"));
}
