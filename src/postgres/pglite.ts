/**
 * The Database over a PGlite. It has one session, so statements and transactions go one after the other. Two guards that a
 * server has and it lacks: a transaction that does nothing for too long is rolled back, since it keeps everybody waiting;
 * and after a failure of the engine itself (a full disk, a trap of its code) every call fails, because its answers can no
 * longer be trusted. What was confirmed before is safe in the folder, and a new start reads it.
 */
import type { PGlite, Transaction as PgliteTransaction } from "@electric-sql/pglite";
import { nobody } from "../store/watcher.ts";
import {
  answeredWithin,
  type Database,
  DatabaseError,
  faultOf,
  inTransaction,
  type Session,
  statementsOn,
  type Transaction,
} from "./database.ts";
import { oneAfterTheOther } from "./turns.ts";
import { parameter, parsers } from "./values.ts";

export interface PgliteOptions {
  idle_transaction_ms: number;
  /** Runs once the engine is closed, or could not be. */
  closed(): void | Promise<void>;
  /** Runs before it is closed. */
  closing(): Promise<void>;
}

/** Waits for the engine's answer; throws DatabaseError. */
type Ask = <T>(start: () => Promise<T>) => Promise<T>;

export function databaseOver(pglite: PGlite, options: PgliteOptions): Database {
  const engine = guarded();
  const ask: Ask = async (start) => {
    if (closed) throw new DatabaseError("the database is closed", "unavailable");
    return engine(start);
  };
  const inTurn = oneAfterTheOther(() => performance.now());
  let watcher = nobody;
  let waiting = 0;
  /** Waiting for its turn is part of what a statement or a transaction takes. */
  const queued: Ask = async (start) => {
    const asked_ms = performance.now();
    const tell = (failure: "connection" | "statement" | null) =>
      watcher.answered("embedded", performance.now() - asked_ms, failure);
    waiting += 1;
    try {
      const value = await ask(() => inTurn(start));
      tell(null);
      return value;
    } catch (error) {
      tell(faultOf(error));
      throw error;
    } finally {
      waiting -= 1;
    }
  };
  const base = statementsOn("pglite", sessionOf(pglite, queued));
  let closed: Promise<void> | undefined;
  return {
    ...base,
    transaction: (work) => inTurn(() => transaction(pglite, ask, options.idle_transaction_ms, work)),
    async lane(settings = {}) {
      for (const [name, value] of Object.entries(settings)) {
        await base.query("select set_config($1, $2, false)", [name, value]);
      }
      return { query: base.query, close: async () => {} };
    },
    async listen(channel, onMessage, onConnect) {
      const stop = await ask(() => pglite.listen(channel, onMessage));
      onConnect?.();
      return () => ask(() => stop());
    },
    watch(by) {
      watcher = by;
    },
    inUse() {
      const busy = Math.min(1, waiting);
      return { store: "embedded", busy, idle: 1 - busy, waiting: waiting - busy };
    },
    async ping(timeout_ms) {
      await answeredWithin(base.query("select 1"), timeout_ms, "the embedded database");
    },
    close() {
      closed ??= (async () => {
        try {
          await options.closing();
          await engine(() => inTurn(() => pglite.close()));
        } finally {
          await options.closed();
        }
      })();
      return closed;
    },
  };
}

function sessionOf(pglite: PGlite | PgliteTransaction, ask: Ask): Session {
  return {
    async run(text, params, form) {
      const values = params.map(parameter);
      const rowMode = form === "arrays" ? "array" : "object";
      const { rows } = await ask(() => pglite.query(text, values, { rowMode, serializers, parsers: ours }));
      return rows;
    },
    exec: (text) => ask(() => pglite.exec(text)),
  };
}

async function transaction<T>(
  pglite: PGlite,
  ask: Ask,
  idle_ms: number,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  let outcome: { value: T } | { thrown: unknown } | undefined;
  const steps = async (tx: PgliteTransaction) => {
    const idle = idleGuard(idle_ms);
    const session = sessionOf(tx, (start) => idle.busy(ask(start)));
    try {
      outcome = { value: await inTransaction("pglite", session, (own) => idle.unless(work(own))) };
    } catch (error) {
      outcome = { thrown: error };
      throw error;
    } finally {
      idle.stop();
    }
  };
  // What the work threw is its own affair, and no failure of the engine.
  await ask(() =>
    pglite.transaction(steps).catch((error: unknown) => {
      if (!(outcome && "thrown" in outcome)) throw error;
    }),
  );
  if (!outcome) throw new Error("a transaction was committed without its work");
  if ("thrown" in outcome) throw outcome.thrown;
  return outcome.value;
}

/** Rejects `unless` when nothing has been `busy` for so long. */
function idleGuard(idle_ms: number) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => {});
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const why = `a transaction did nothing for ${idle_ms} ms and was rolled back`;
      over.reject(new DatabaseError(why, "25P03"));
    }, idle_ms);
  };
  wait();
  return {
    async busy<T>(statement: Promise<T>): Promise<T> {
      clearTimeout(timer);
      try {
        return await statement;
      } finally {
        wait();
      }
    },
    unless: <T>(work: Promise<T>): Promise<T> => Promise.race([work, over.promise]),
    stop: () => clearTimeout(timer),
  };
}

/** Fails every call once the engine has failed. */
function guarded(): Ask {
  let broken: DatabaseError | undefined;
  return async (start) => {
    if (broken) throw broken;
    try {
      return await start();
    } catch (error) {
      if (error instanceof DatabaseError) throw error;
      const { message, code } = told(error);
      if (code === undefined || engineFailure.test(code)) {
        broken ??= new DatabaseError(
          `the embedded database has failed (${message}); see that its disk is not full, and restart`,
          "unavailable",
        );
        throw broken;
      }
      // Without the driver's error as its cause: that one carries every parameter, and logs print causes.
      throw new DatabaseError(message, code);
    }
  };
}

/** Internal errors and corruption, as opposed to what a statement may do wrong. */
const engineFailure = /^XX/;

/** Without a SQLSTATE it is none of Postgres's errors. */
function told(error: unknown): { message: string; code: string | undefined } {
  if (!(error instanceof Error)) return { message: String(error), code: undefined };
  const code = "code" in error && "severity" in error && typeof error.code === "string" ? error.code : undefined;
  return { message: error.message, code };
}

const ours = Object.fromEntries(parsers);
/** Parameters are text already: no type's own serializer may touch them. */
const serializers = new Proxy<Record<number, (value: string) => string>>({}, { get: () => String });
