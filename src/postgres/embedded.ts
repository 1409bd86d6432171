/** The driver for the embedded database: PGlite in a data folder. */
import type { PGlite, Transaction as PgliteTransaction } from "@electric-sql/pglite";
import { answeredWithin, type Database, DatabaseError, drizzleOver, type Transaction } from "./database.ts";
import { parameter, parsers } from "./values.ts";

export async function embeddedDatabase(folder: string): Promise<Database> {
  const { PGlite } = await import("@electric-sql/pglite");
  const pglite = await PGlite.create({ dataDir: folder, parsers: Object.fromEntries(parsers) });
  return databaseOver(pglite);
}

function databaseOver(pglite: PGlite): Database {
  const base = transactionOver(pglite, 0);
  return {
    ...base,
    async lane(settings = {}) {
      for (const [name, value] of Object.entries(settings))
        await base.query("select set_config($1, $2, false)", [name, value]);
      return { query: base.query, close: async () => {} };
    },
    async listen(channel, onMessage, onConnect) {
      const stop = await pglite.listen(`"${channel.replaceAll('"', '""')}"`, onMessage);
      onConnect?.();
      return () => stop();
    },
    async ping(timeout_ms) {
      await answeredWithin(base.query("select 1"), timeout_ms, "the embedded database");
    },
    close: () => pglite.close(),
  };
}

function transactionOver(pglite: PGlite | PgliteTransaction, depth: number): Transaction {
  const run = async <Row>(text: string, params: readonly unknown[], rowMode: "array" | "object"): Promise<Row[]> => {
    const { rows } = await asked(
      pglite.query<Row>(text, params.map(parameter), { rowMode, serializers: asText, parsers: ours }),
    );
    return rows;
  };
  const query = <Row>(text: string, params: readonly unknown[] = []) => run<Row>(text, params, "object");
  const exec = async (text: string) => {
    await asked(pglite.exec(text));
  };
  return {
    kind: "pglite",
    query,
    exec,
    async transaction(work) {
      if (!("transaction" in pglite))
        return savepoint(`s${depth}`, exec, () => work(transactionOver(pglite, depth + 1)));
      return asked(pglite.transaction((tx) => work(transactionOver(tx, depth + 1))));
    },
    async notify(channel, payload) {
      await query("select pg_notify($1, $2)", [channel, payload]);
    },
    drizzle: drizzleOver(
      (text, params) => run<unknown[]>(text, params, "array"),
      (text, params) => run<unknown>(text, params, "object"),
    ),
  };
}

async function savepoint<T>(name: string, exec: (sql: string) => Promise<void>, work: () => Promise<T>): Promise<T> {
  await exec(`savepoint ${name}`);
  try {
    const result = await work();
    await exec(`release savepoint ${name}`);
    return result;
  } catch (error) {
    await exec(`rollback to savepoint ${name}`);
    throw error;
  }
}

const ours = Object.fromEntries(parsers);
/** Parameters are text already: no type's own serializer may touch them. */
const asText = new Proxy<Record<number, (value: string) => string>>({}, { get: () => String });

async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (
      error instanceof Error &&
      "code" in error &&
      typeof error.code === "string" &&
      !(error instanceof DatabaseError)
    ) {
      throw new DatabaseError(error.message, error.code, { cause: error });
    }
    throw error;
  }
}
