/**
 * The Database over a PGlite on its thread. It has one session, so during a transaction everybody else waits. Two
 * guards are added that a server has: a transaction that is idle for too long is rolled back; and after a failure of
 * the engine itself (a full disk, a trap of its code) every call fails, because its answers can no longer be trusted.
 * Data that was confirmed before is safe in the folder, and a new start reads it. So a process that serves requests
 * ends when the engine fails.
 */
import type { StoreWatcher } from "../../features/telemetry/store/watcher.ts";
import {
  answeredWithin,
  type Database,
  inTransaction,
  type Session,
  statementsOn,
  type Transaction,
} from "./database.ts";
import { DatabaseError, faultOf } from "./database-error.ts";
import type { DatabaseThread } from "./embedded-thread.ts";
import { parameter } from "./values.ts";

interface PgliteOptions {
  idle_transaction_ms: number;
  /** Called once the engine is closed, or could not be closed. */
  closed(): void | Promise<void>;
  /** Called before the engine is closed. */
  closing(): Promise<void>;
}

/** Sends a statement and waits for the engine's answer. Throws DatabaseError. */
type Send = <T>(start: () => Promise<T>) => Promise<T>;
type Listener = (payload: string) => void;

export function databaseOver(thread: DatabaseThread, options: PgliteOptions): Database {
  const failed = Promise.withResolvers<string>();
  const engine = guarded(failed.resolve);
  const send: Send = async (start) => {
    if (closed) throw new DatabaseError("the database is closed", "unavailable");
    return engine(start);
  };
  const turns = takingTurns();
  const session = sessionOf(thread, send);
  let watcher: StoreWatcher | null = null;
  let waiting = 0;
  /** The time that a statement waits for the session counts as part of the statement's time. */
  const watched: Send = async (start) => {
    const began_ms = performance.now();
    const report = (failure: "connection" | "statement" | null) =>
      watcher?.answered("embedded", performance.now() - began_ms, failure);
    waiting += 1;
    try {
      const value = await turns.statement(() => send(start));
      report(null);
      return value;
    } catch (error) {
      report(faultOf(error));
      throw error;
    } finally {
      waiting -= 1;
    }
  };
  const base = statementsOn("pglite", sessionOf(thread, watched));
  const listeners = new Map<string, Set<Listener>>();
  thread.onNotification((channel, payload) => listeners.get(channel)?.forEach((listener) => void listener(payload)));
  let closed: Promise<void> | undefined;
  return {
    ...base,
    transaction: (work) => turns.transaction(() => transaction(session, options.idle_transaction_ms, work)),
    async lane(settings = {}) {
      for (const [name, value] of Object.entries(settings)) {
        await base.query("select set_config($1, $2, false)", [name, value]);
      }
      return { query: base.query, close: async () => {} };
    },
    async listen(channel, onMessage, onConnect) {
      const all = listeners.get(channel) ?? new Set();
      listeners.set(channel, all.add(onMessage));
      await base.exec(`listen ${channel}`);
      onConnect?.();
      return async () => void all.delete(onMessage);
    },
    watch(by) {
      watcher = by;
    },
    failed: failed.promise,
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
          await engine(() => turns.transaction(() => thread.close()));
        } finally {
          await options.closed();
        }
      })();
      return closed;
    },
  };
}

function sessionOf(thread: DatabaseThread, send: Send): Session {
  return {
    run: (text, params, form) => send(() => thread.run(text, params.map(parameter), form)),
    exec: (text) => send(() => thread.exec(text)),
  };
}

/**
 * Orders the work on the single session of the embedded database. Statements are sent without waiting and answered in
 * order, so many may be pending; a transaction has the session for itself until it ends. All are served in the order of
 * their arrival.
 */
function takingTurns() {
  let gate: Promise<unknown> = Promise.resolve();
  return {
    /** `send` must send its statement before it returns. */
    async statement<T>(send: () => Promise<T>): Promise<T> {
      let answer: Promise<T> | undefined;
      const sent = gate.then(() => {
        answer = send();
        answer.catch(() => {});
      });
      gate = sent;
      await sent;
      return answer!;
    },
    transaction<T>(work: () => Promise<T>): Promise<T> {
      const mine = gate.then(work);
      gate = mine.catch(() => {});
      return mine;
    },
  };
}

async function transaction<T>(session: Session, idle_ms: number, work: (tx: Transaction) => Promise<T>): Promise<T> {
  await session.exec("begin");
  const idle = idleGuard(idle_ms);
  let hasFailed = false;
  const sent = <A>(statement: Promise<A>): Promise<A> => {
    statement.catch(() => {
      hasFailed = true;
    });
    return idle.busy(statement);
  };
  const own: Session = {
    run: (...statement) => sent(session.run(...statement)),
    exec: (text) => sent(session.exec(text)),
  };
  let value: T;
  try {
    value = await inTransaction("pglite", own, (tx) => idle.unless(work(tx)));
    // If a statement failed, Postgres would answer a commit by rolling back, without an error. Any other statement
    // fails then, so one is sent here to get the error.
    if (hasFailed) await session.exec("select 1");
  } catch (error) {
    // If the rollback fails too, the engine has failed, and all later calls fail.
    await session.exec("rollback").catch(() => {});
    throw error;
  } finally {
    idle.stop();
  }
  await session.exec("commit");
  return value;
}

/**
 * Makes a guard against idle transactions: the promises that `unless` returns reject if no work has been passed to
 * `busy` for `idle_ms`.
 */
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

/** Makes a `Send` that fails at every call once the engine has failed. It calls `failed` with the cause. */
function guarded(failed: (cause: string) => void): Send {
  let broken: DatabaseError | undefined;
  return async (start) => {
    if (broken) throw broken;
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof DatabaseError && isEngineFailure(error.code))) throw error;
      broken ??= new DatabaseError(
        `the embedded database has failed (${error.message}); see that its disk is not full, and restart`,
        "unavailable",
      );
      failed(broken.message);
      throw broken;
    }
  };
}

/** Whether the code is of an internal error or of corruption, which no statement can cause. */
export function isEngineFailure(code: string): boolean {
  return code.startsWith("XX");
}
