/**
 * The driver for a Postgres server: postgres.js, prepared statements, a pool of a few connections. Postgres ends a
 * statement that takes too long; where the server itself has fallen silent (a cut network, a frozen machine), the driver
 * would wait for ever: then the pool is given up, what waited on it fails, and new connections are tried.
 */
import postgres from "postgres";
import { connectionOf } from "./address.ts";
import { answeredWithin, type Database, DatabaseError, drizzleOver, type Lane, type Transaction } from "./database.ts";
import { parameter, parsers } from "./values.ts";

export interface ServerOptions {
  /** Connections of the pool; lanes and the listener have their own. */
  connections_max?: number;
  connect_ms?: number;
  /** The server ends a statement that takes longer; the driver waits half as long again before it gives up the pool. */
  statement_ms?: number;
  /** A transaction that does nothing for so long is ended by the server, so that a lost client holds no lock. */
  idle_transaction_ms?: number;
  /** How long `close` waits for what is running. */
  close_ms?: number;
}

const defaults: Required<ServerOptions> = {
  connections_max: 6,
  connect_ms: 5_000,
  statement_ms: 10_000,
  idle_transaction_ms: 30_000,
  close_ms: 5_000,
};

type Sql = postgres.Sql;
type Tx = postgres.TransactionSql;

/**
 * Connects and asks one question, so that a wrong address fails here. Throws DatabaseError (`unavailable`, or the
 * server's SQLSTATE) with a message that names host, port and database, never the password.
 */
export async function serverDatabase(url: string, options: ServerOptions = {}): Promise<Database> {
  const limits = { ...defaults, ...options };
  const address = connectionOf(url);
  const client = (connections_max: number, settings: Record<string, string> = {}): Sql =>
    postgres({
      ...address.options,
      max: connections_max,
      connect_timeout: limits.connect_ms / 1_000,
      backoff: reconnect_s,
      fetch_types: false,
      onnotice: () => {},
      types,
      connection: {
        application_name: "sluice",
        ...address.settings,
        TimeZone: "UTC",
        DateStyle: "ISO",
        bytea_output: "hex",
        statement_timeout: limits.statement_ms,
        idle_in_transaction_session_timeout: limits.idle_transaction_ms,
        ...settings,
      },
    });
  const pool = renewable(() => client(limits.connections_max), limits.statement_ms * 1.5);
  const listener = client(1);
  const close_s = limits.close_ms / 1_000;
  const lanes = new Set<Sql>();
  let closed: Promise<void> | undefined;

  const base = transactionOver(pool.current, pool.ask);
  const db: Database = {
    ...base,
    async lane(settings) {
      const own = client(1, settings);
      lanes.add(own);
      const lane: Lane = {
        query: (text, params) => rowsOf(asked(own.unsafe(text, parameters(params), statement))),
        async close() {
          lanes.delete(own);
          await own.end({ timeout: close_s });
        },
      };
      return lane;
    },
    async listen(channel, onMessage, onConnect) {
      const { unlisten } = await asked(listener.listen(channel, onMessage, onConnect));
      return async () => {
        await asked(unlisten());
      };
    },
    async ping(timeout_ms) {
      await answeredWithin(base.query("select 1"), timeout_ms, "the database");
    },
    close() {
      closed ??= Promise.all([pool.current(), listener, ...lanes].map((sql) => sql.end({ timeout: close_s }))).then(
        () => {},
      );
      return closed;
    },
  };

  try {
    await answeredWithin(base.query("select 1"), limits.connect_ms * 2, "the server");
    return db;
  } catch (error) {
    await Promise.all([pool.current(), listener].map((sql) => sql.end({ timeout: 0 })));
    const { message, code } = failure(error);
    throw new DatabaseError(`cannot use the database at ${address.shown}: ${message}`, code);
  }
}

/** How long after so many failures in a row the next connection is tried; the driver's own goes up to 20 s. */
function reconnect_s(failures: number): number {
  return Math.min(0.05 * 2 ** failures, 1);
}

/** Waits for an answer of the driver; throws DatabaseError. */
type Ask = <T>(answer: PromiseLike<T>) => Promise<T>;

/** A pool that is replaced by a new one when an answer is so late that the server must be gone. */
function renewable(make: () => Sql, answer_ms: number): { current: () => Sql; ask: Ask } {
  let sql = make();
  const ask: Ask = async (answer) => {
    const asking = sql;
    try {
      return await answeredWithin(asked(answer), answer_ms, "the database");
    } catch (error) {
      if (error instanceof DatabaseError && error.code === "silent" && sql === asking) {
        sql = make();
        asking.end({ timeout: 0 }).catch(() => {});
      }
      throw error;
    }
  };
  return { current: () => sql, ask };
}

function transactionOver(source: () => Sql | Tx, ask: Ask): Transaction {
  const query = <Row>(text: string, params?: readonly unknown[]) =>
    rowsOf<Row>(ask(source().unsafe(text, parameters(params), statement)));
  return {
    kind: "postgres",
    query,
    async exec(text) {
      await ask(source().unsafe(text));
    },
    async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
      let outcome: { value: T } | { thrown: unknown } | undefined;
      const steps = async (tx: Tx) => {
        try {
          outcome = { value: await work(transactionOver(() => tx, ask)) };
        } catch (error) {
          outcome = { thrown: error };
          throw error;
        }
      };
      const sql = source();
      try {
        await ("savepoint" in sql ? sql.savepoint(steps) : sql.begin(steps));
      } catch (error) {
        throw outcome && "thrown" in outcome ? outcome.thrown : failure(error);
      }
      if (!outcome || "thrown" in outcome) throw new Error("a transaction was committed without its work");
      return outcome.value;
    },
    async notify(channel, payload) {
      await query("select pg_notify($1, $2)", [channel, payload]);
    },
    drizzle: drizzleOver((text, params) => ask(source().unsafe(text, parameters(params), statement).values()), query),
  };
}

// Without `simple: false` the driver sends a statement that has no parameters unprepared; its types do not know the option.
const statement: postgres.UnsafeQueryOptions = Object.assign({ prepare: true }, { simple: false });

function parameters(params: readonly unknown[] = []): (string | null)[] {
  return params.map(parameter);
}

/** Rows, without what the driver hangs on its list of them. */
async function rowsOf<Row>(answer: Promise<unknown>): Promise<Row[]> {
  return [...((await answer) as Row[])];
}

async function asked<T>(answer: PromiseLike<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw failure(error);
  }
}

function failure(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  // Without the driver's error as its cause: that one carries what was written, and logs print causes.
  if (error instanceof postgres.PostgresError) return new DatabaseError(error.message, error.code);
  return new DatabaseError(error instanceof Error ? error.message : String(error), "unavailable");
}

/** Ours for every type, so that parameters are sent as they are and nothing is guessed. */
const types: Record<string, postgres.PostgresType> = Object.fromEntries(
  [...parsers].map(([type, parse]) => [`type_${type}`, { to: type, from: [type], serialize: String, parse }]),
);
