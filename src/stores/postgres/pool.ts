/**
 * A pool of a few connections. A statement is sent on the least busy one, behind others if none is idle; a transaction
 * has a connection for itself. A lost connection is dropped, and the next statement makes a new one.
 */
import type { DatabaseConnection } from "./connection.ts";
import { answeredWithin } from "./database.ts";
import { DatabaseError } from "./database-error.ts";

export interface Pool {
  /**
   * Calls `send` with a connection, on which it must send one statement immediately: a moment later the connection may
   * be in a transaction.
   */
  shared<T>(send: (connection: DatabaseConnection) => Promise<T>): Promise<T>;
  /** Runs `work` on a connection that nobody else uses until `work` has ended. */
  alone<T>(work: (connection: DatabaseConnection) => Promise<T>): Promise<T>;
  inUse(): { idle: number; busy: number; waiting: number };
  /** Closes the pool. Waits at most this long for the statements in flight. */
  close(wait_ms: number): Promise<void>;
}

interface PoolOptions {
  connections_max: number;
  /** How long a statement or a transaction waits for a connection while transactions occupy all of them. */
  wait_ms: number;
  /** Makes a connection. `lost` must be called when it is lost. */
  make(lost: () => void): DatabaseConnection;
}

/** How long no connection is added after the server has refused one. */
const crowded_ms = 1_000;
/** The codes of that: too many connections, another password, or a role that may not connect any more. */
const refusals = ["53300", "28P01", "28000"];

export function poolOf({ connections_max, wait_ms, make }: PoolOptions): Pool {
  const all = new Set<DatabaseConnection>();
  const taken = new Set<DatabaseConnection>();
  let waiting = 0;
  let crowdedUntil_ms = Number.NEGATIVE_INFINITY;
  let change = Promise.withResolvers<void>();
  let isClosed = false;

  const changed = () => {
    change.resolve();
    change = Promise.withResolvers<void>();
  };

  function add(): DatabaseConnection {
    const connection = make(() => {
      all.delete(connection);
      taken.delete(connection);
      changed();
    });
    all.add(connection);
    return connection;
  }

  function idlest(): DatabaseConnection | undefined {
    if (isClosed) throw new DatabaseError("the database is closed", "unavailable");
    let best: DatabaseConnection | undefined;
    for (const one of all) if (!taken.has(one) && (!best || one.inFlight() < best.inFlight())) best = one;
    const isFull = all.size >= connections_max || (all.size > 0 && performance.now() < crowdedUntil_ms);
    return best?.inFlight() === 0 || isFull ? best : add();
  }

  /** Whether the server refused this connection, so that nothing was sent on it, and others are open. */
  function isCrowdedOut(connection: DatabaseConnection, error: unknown): boolean {
    const isRefused = error instanceof DatabaseError && refusals.includes(error.code) && connection.isLost();
    if (!isRefused || all.size === 0) return false;
    crowdedUntil_ms = performance.now() + crowded_ms;
    return true;
  }

  /** Waits for a free connection and returns the result of `use`, which gets it before any other work can take it. */
  async function found<T>(use: (connection: DatabaseConnection) => Promise<T>): Promise<T> {
    const started = performance.now();
    while (true) {
      const connection = idlest();
      if (connection) {
        try {
          return await use(connection);
        } catch (error) {
          if (isCrowdedOut(connection, error)) continue;
          throw error;
        }
      }
      const left_ms = Math.max(1, Math.ceil(wait_ms - (performance.now() - started)));
      waiting += 1;
      await answeredWithin(change.promise, left_ms, "a free connection to the database").finally(() => {
        waiting -= 1;
      });
    }
  }

  return {
    shared: found,
    alone: (work) =>
      found(async (connection) => {
        taken.add(connection);
        try {
          return await work(connection);
        } finally {
          taken.delete(connection);
          changed();
        }
      }),
    inUse() {
      const busy = [...all].filter((one) => taken.has(one) || one.inFlight() > 0).length;
      return { idle: all.size - busy, busy, waiting };
    },
    async close(within_ms) {
      isClosed = true;
      changed();
      await Promise.all([...all].map((connection) => connection.end(within_ms)));
    },
  };
}
