/** The driver for a Postgres server: postgres.js, prepared statements, a pool of a few connections. */
import postgres from "postgres";
import { connectionOf } from "./address.ts";
import { answeredWithin, type Database, DatabaseError, drizzleOver, type Lane, type Transaction } from "./database.ts";
import { parameter, parsers } from "./values.ts";

export interface ServerOptions {
  /** Connections of the pool; lanes and the listener have their own. */
  connections_max?: number;
  connect_ms?: number;
  /** The server ends a statement that takes longer. */
  statement_ms?: number;
  /** A transaction that does nothing for so long is ended, so that a lost client holds no lock. */
  idle_transaction_ms?: number;
}

type Sql = postgres.Sql;
type Tx = postgres.TransactionSql;

/**
 * Connects and asks one question, so that a wrong address fails here. Throws DatabaseError (`unavailable`, or the
 * server's SQLSTATE) with a message that names host, port and database, never the password.
 */
export async function serverDatabase(url: string, options: ServerOptions = {}): Promise<Database> {
  const connect_ms = options.connect_ms ?? 5_000;
  const address = connectionOf(url);
  const client = (connections_max: number, settings: Record<string, string> = {}): Sql =>
    postgres({
      ...address.options,
      max: connections_max,
      connect_timeout: connect_ms / 1_000,
      fetch_types: false,
      onnotice: () => {},
      types,
      connection: {
        application_name: "sluice",
        ...address.settings,
        TimeZone: "UTC",
        DateStyle: "ISO",
        bytea_output: "hex",
        statement_timeout: options.statement_ms ?? 10_000,
        idle_in_transaction_session_timeout: options.idle_transaction_ms ?? 30_000,
        ...settings,
      },
    });
  const sql = client(options.connections_max ?? 6);
  const lanes = new Set<Sql>();
  const db: Database = {
    ...transactionOver(sql),
    async lane(settings) {
      const own = client(1, settings);
      lanes.add(own);
      const lane: Lane = {
        query: (text, params) => run(own, text, params),
        close: async () => {
          lanes.delete(own);
          await own.end({ timeout: close_s });
        },
      };
      return lane;
    },
    async listen(channel, onMessage, onConnect) {
      const { unlisten } = await asked(sql.listen(channel, onMessage, onConnect));
      return async () => {
        await asked(unlisten());
      };
    },
    async ping(timeout_ms) {
      await answeredWithin(run(sql, "select 1"), timeout_ms, "the database");
    },
    async close() {
      await Promise.all([sql, ...lanes].map((one) => one.end({ timeout: close_s })));
    },
  };
  try {
    await answeredWithin(run(sql, "select 1"), connect_ms * 2, "the server");
    return db;
  } catch (error) {
    await sql.end({ timeout: 0 });
    const { message, code } = failure(error);
    throw new DatabaseError(`cannot use the database at ${address.shown}: ${message}`, code, { cause: error });
  }
}

const close_s = 5;

function transactionOver(sql: Sql | Tx): Transaction {
  return {
    kind: "postgres",
    query: (text, params) => run(sql, text, params),
    async exec(text) {
      await asked(sql.unsafe(text));
    },
    async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
      let result: { value: T } | undefined;
      const steps = async (tx: Tx) => {
        result = { value: await work(transactionOver(tx)) };
      };
      await asked("savepoint" in sql ? sql.savepoint(steps) : sql.begin(steps));
      return result!.value;
    },
    async notify(channel, payload) {
      await run(sql, "select pg_notify($1, $2)", [channel, payload]);
    },
    drizzle: drizzleOver(
      async (text, params) => asked(sql.unsafe(text, params.map(parameter), statement).values()),
      (text, params) => run(sql, text, params),
    ),
  };
}

// Without `simple: false` the driver sends a statement that has no parameters unprepared; its types do not know the option.
const statement: postgres.UnsafeQueryOptions = Object.assign({ prepare: true }, { simple: false });

async function run<Row>(sql: Sql | Tx, text: string, params: readonly unknown[] = []): Promise<Row[]> {
  return [...((await asked(sql.unsafe(text, params.map(parameter), statement))) as unknown as Row[])];
}

/** The driver's errors, as ours. What our own code threw inside a transaction passes unchanged. */
async function asked<T>(answer: PromiseLike<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof postgres.PostgresError || isLoss(error) ? failure(error) : error;
  }
}

function isLoss(error: unknown): error is Error & { code: string } {
  return (
    error instanceof Error && "code" in error && typeof error.code === "string" && !(error instanceof DatabaseError)
  );
}

function failure(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  if (error instanceof postgres.PostgresError) return new DatabaseError(error.message, error.code, { cause: error });
  const message = error instanceof Error ? error.message : String(error);
  return new DatabaseError(message, "unavailable", { cause: error });
}

/** Ours for every type, so that parameters are sent as they are and nothing is guessed. */
const types: Record<string, postgres.PostgresType> = Object.fromEntries([
  ...[...parsers].map(([type, parse]) => [`type_${type}`, { to: type, from: [type], serialize: String, parse }]),
]);
