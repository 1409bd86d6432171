/**
 * The driver for a Postgres server: postgres.js, prepared statements, a pool of a few connections. The server ends a
 * statement that takes too long; where it has itself fallen silent (a cut network, a frozen machine), the connection is
 * given up, what waits on it fails, and a new one is tried.
 */
import { type Address, addressOf } from "./address.ts";
import { type Connection, connectionTo, type Dialing } from "./connection.ts";
import { answeredWithin, type Database, DatabaseError, drizzleOver, type Transaction } from "./database.ts";
import { listenerOn } from "./listener.ts";
import { poolOf } from "./pool.ts";

export interface ServerOptions {
  /** Connections of the pool; lanes and the listener have their own. */
  connections_max?: number;
  connect_ms?: number;
  /** The server ends a statement that takes longer; half as long again without a word, and the server is taken for gone. */
  statement_ms?: number;
  /** A transaction that does nothing for so long is ended by the server, so that a lost client holds no lock. */
  idle_transaction_ms?: number;
  /** Between attempts to listen again. */
  listen_retry_ms?: number;
  /** How long `close` waits for what is running. */
  close_ms?: number;
}

const defaults: Required<ServerOptions> = {
  connections_max: 6,
  connect_ms: 5_000,
  statement_ms: 10_000,
  idle_transaction_ms: 30_000,
  listen_retry_ms: 250,
  close_ms: 5_000,
};

/**
 * Connects and asks one question, so that a wrong address fails here. Throws DatabaseError (`unavailable`, or the
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
    throw new DatabaseError(`cannot use the database at ${address.shown}: ${message}`, code);
  }
}

function databaseAt(address: Address, limits: Required<ServerOptions>): Database {
  const dial = (more: Partial<Dialing> = {}) =>
    connectionTo({
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
  const listener = listenerOn({ make: dial, retry_ms: limits.listen_retry_ms });
  const lanes = new Set<Connection>();
  let closed: Promise<void> | undefined;

  const base: Transaction = {
    ...sending(pool.shared),
    transaction: (work, { statement_ms } = {}) =>
      pool.alone((connection) => transaction(connection, work, statement_ms ?? null)),
  };
  return {
    ...base,
    async lane(settings = {}) {
      let own: Connection | undefined;
      const current = () => {
        if (own && !own.isLost()) return own;
        if (own) lanes.delete(own);
        own = dial({ settings });
        lanes.add(own);
        return own;
      };
      return {
        query: async <Row>(text: string, params: readonly unknown[] = []) =>
          (await current().run(text, params, "objects")) as Row[],
        async close() {
          if (own) lanes.delete(own);
          await own?.end(limits.close_ms);
        },
      };
    },
    listen: listener.listen,
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

type Use = <T>(ask: (connection: Connection) => Promise<T>) => Promise<T>;

/** All but `transaction`; `use` gives each statement its connection. */
function sending(use: Use): Omit<Transaction, "transaction"> {
  const query = async <Row>(text: string, params: readonly unknown[] = []) =>
    (await use((connection) => connection.run(text, params, "objects"))) as Row[];
  const arrays = async (text: string, params: unknown[]) =>
    (await use((connection) => connection.run(text, params, "arrays"))) as unknown[][];
  return {
    kind: "postgres",
    query,
    async exec(text) {
      await use((connection) => connection.exec(text));
    },
    async notify(channel, payload) {
      await query("select pg_notify($1, $2)", [channel, payload]);
    },
    drizzle: drizzleOver(arrays, query),
  };
}

async function transaction<T>(
  connection: Connection,
  work: (tx: Transaction) => Promise<T>,
  statement_ms: number | null,
): Promise<T> {
  let value: T;
  try {
    connection.allow(statement_ms);
    await connection.exec(`begin${statement_ms === null ? "" : `; set local statement_timeout = ${statement_ms}`}`);
    value = await within(connection, work, 0);
  } catch (error) {
    // Where even that fails nobody knows what the session is in the middle of.
    await connection.exec("rollback").catch(() => connection.discard());
    throw error;
  } finally {
    connection.allow(null);
  }
  // Postgres answers a commit after a failed statement by rolling back, without an error.
  const outcome = await connection.exec("commit");
  if (outcome !== "COMMIT") {
    throw new DatabaseError("the transaction was rolled back: a statement in it had failed", "25P02");
  }
  return value;
}

/** The work on a connection whose transaction is open; when it has ended, nothing more of it gets through. */
async function within<T>(connection: Connection, work: (tx: Transaction) => Promise<T>, depth: number): Promise<T> {
  let isOver = false;
  const use: Use = async (ask) => {
    if (isOver) throw new DatabaseError("the transaction is over", "25P01");
    return ask(connection);
  };
  const exec = (text: string) => use((one) => one.exec(text));
  const nested = async <U>(inner: (tx: Transaction) => Promise<U>): Promise<U> => {
    const name = `s${depth}`;
    await exec(`savepoint ${name}`);
    try {
      const value = await within(connection, inner, depth + 1);
      await exec(`release savepoint ${name}`);
      return value;
    } catch (error) {
      await exec(`rollback to savepoint ${name}`);
      throw error;
    }
  };
  try {
    return await work({ ...sending(use), transaction: nested });
  } finally {
    isOver = true;
  }
}
