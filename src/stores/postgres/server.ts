/**
 * The driver for a Postgres server: postgres.js with prepared statements and a pool of a few connections. The server
 * ends a statement that takes too long. If the server itself is silent (a cut network, a frozen machine), the
 * connection is given up, its waiting statements fail, and a new one is tried.
 */
import type { StoreWatcher } from "../../features/telemetry/store/watcher.ts";
import { type Address, addressOf } from "./address.ts";
import { connectionTo, type DatabaseConnection, type Dialing } from "./connection.ts";
import { answeredWithin, type Database, inTransaction, statementsOn, type Transaction } from "./database.ts";
import { DatabaseError } from "./database-error.ts";
import { listenerOn } from "./listener.ts";
import { placesFor } from "./places.ts";
import { poolOf } from "./pool.ts";

const defaults = {
  /** The most connections of the pool. Lanes and the listener use connections of their own. */
  connections_max: 6,
  connect_ms: 5_000,
  /**
   * The server ends a statement that takes longer. If there is no answer after half as long again, the server counts as
   * unreachable.
   */
  statement_ms: 10_000,
  /** The server ends a transaction that is idle for this long, so that a lost client holds no locks. */
  idle_transaction_ms: 30_000,
  /** The wait between two attempts to listen again. */
  listen_retry_ms: 250,
  /** How long `close` waits for running statements. */
  close_ms: 5_000,
};

/**
 * The number of pool connections of each process, if this many processes share the server: at least one for a
 * transaction that may take long, and another for queries meanwhile.
 */
export function poolShare(processes: number): number {
  return Math.max(2, Math.ceil(defaults.connections_max / processes));
}

export type ServerOptions = Partial<typeof defaults>;

/**
 * Connects and sends one query, so that a wrong address fails immediately. Throws DatabaseError (`unavailable`, or the
 * server's SQLSTATE) with a message that names host, port and database, never the password.
 */
export async function serverDatabase(url: string, options: ServerOptions = {}): Promise<Database> {
  const limits = { ...defaults, ...options };
  const address = addressOf(url);
  const db = databaseAt(address, limits);
  try {
    await answeredWithin(db.query("select 1"), limits.connect_ms * 2, "the server");
    return db;
  } catch (error) {
    await db.close();
    const { message, code } = error instanceof DatabaseError ? error : new DatabaseError(String(error), "unavailable");
    throw new DatabaseError(`cannot use the database at ${address.label}: ${message}`, code);
  }
}

function databaseAt(address: Address, limits: typeof defaults): Database {
  let watcher: StoreWatcher | null = null;
  /** A watcher that passes everything on to the current watcher. */
  const forwarding: StoreWatcher = {
    answered: (...answer) => watcher?.answered(...answer),
    opened: (store) => watcher?.opened(store),
    lost: (store) => watcher?.lost(store),
  };
  const dial = (more: Partial<Dialing> = {}) =>
    connectionTo({
      watcher: forwarding,
      address,
      connect_ms: limits.connect_ms,
      statement_ms: limits.statement_ms,
      ...more,
      settings: { idle_in_transaction_session_timeout: limits.idle_transaction_ms, ...more.settings },
    });
  const pool = poolOf({
    connections_max: limits.connections_max,
    wait_ms: limits.statement_ms,
    make: (lost) => dial({ lost }),
  });
  // Reports and audits take seconds, and anybody may ask for reports: keys are looked up by the other connections.
  const long = placesFor(Math.max(1, limits.connections_max - 2), "the reports and audits before");
  const listener = listenerOn({ make: dial, retry_ms: limits.listen_retry_ms });
  const lanes = new Set<DatabaseConnection>();
  let closed: Promise<void> | undefined;

  const base = statementsOn("postgres", {
    run: (...statement) => pool.shared((connection) => connection.run(...statement)),
    exec: (text) => pool.shared((connection) => connection.exec(text)),
  });
  return {
    ...base,
    transaction(work, { statement_ms } = {}) {
      const run = () => pool.alone((connection) => transaction(connection, work, statement_ms ?? null));
      return statement_ms === undefined ? run() : long(run, statement_ms);
    },
    async lane(settings = {}, { statement_ms = limits.statement_ms } = {}) {
      let own: DatabaseConnection | undefined;
      const current = () => {
        if (own && !own.isLost()) return own;
        if (own) lanes.delete(own);
        own = dial({ settings, statement_ms });
        lanes.add(own);
        return own;
      };
      const query = async <Row>(text: string, params: readonly unknown[] = []) =>
        (await current().run(text, params, "objects")) as Row[];
      return {
        query,
        async close() {
          if (own) lanes.delete(own);
          await own?.end(limits.close_ms);
        },
      };
    },
    listen: listener.listen,
    watch(by) {
      watcher = by;
    },
    inUse: () => ({ store: "postgres", ...pool.inUse() }),
    async ping(timeout_ms) {
      await answeredWithin(base.query("select 1"), timeout_ms, "the database");
    },
    close() {
      closed ??= Promise.all([
        pool.close(limits.close_ms),
        listener.close(),
        ...[...lanes].map((lane) => lane.end(limits.close_ms)),
      ]).then(() => {});
      return closed;
    },
  };
}

async function transaction<T>(
  connection: DatabaseConnection,
  work: (tx: Transaction) => Promise<T>,
  statement_ms: number | null,
): Promise<T> {
  let value: T;
  try {
    connection.allow(statement_ms);
    await connection.exec(`begin${statement_ms === null ? "" : `; set local statement_timeout = ${statement_ms}`}`);
    value = await inTransaction("postgres", connection, work);
  } catch (error) {
    // If the rollback fails too, the state of the session is unknown.
    await connection.exec("rollback").catch(() => connection.discard());
    throw error;
  } finally {
    connection.allow(null);
  }
  // After a failed statement, Postgres answers a commit by rolling back, without an error.
  const outcome = await connection.exec("commit");
  if (outcome !== "COMMIT") {
    throw new DatabaseError("the transaction was rolled back: a statement in it had failed", "25P02");
  }
  return value;
}
