/**
 * The interface to the thread of the embedded database. Requests to the thread are numbered, and each answer has the
 * number of its request.
 */
import { together } from "../../core/time/turns.ts";
import type { Session } from "./database.ts";
import { DatabaseError } from "./database-error.ts";

export interface Statement {
  text: string;
  params: (string | null)[];
  form: "objects" | "arrays";
}
type Work =
  | { ask: "open"; folder: string; maySeed: boolean }
  | ({ ask: "run" } & Statement)
  | { ask: "exec"; text: string }
  | { ask: "close" };
export type ThreadQuestion = Work & { number: number };

/** The answer to a request that failed. `code`: a SQLSTATE, or one of DatabaseError's codes. */
export interface Failure {
  message: string;
  code: string;
}
export type ThreadMessage =
  | { number: number; value: unknown }
  | { number: number; failure: Failure }
  /** A notification, which belongs to no request. */
  | { channel: string; payload: string };

/**
 * The thread that runs the embedded database. Errors are DatabaseErrors; those of class XX are failures of the engine
 * itself.
 */
export interface DatabaseThread extends Pick<Session, "exec"> {
  /** Opens the files in a data folder. It must be the first call. */
  open(folder: string, maySeed: boolean): Promise<unknown>;
  run(text: string, params: (string | null)[], form: "objects" | "arrays"): Promise<unknown[]>;
  onNotification(notified: (channel: string, payload: string) => void): void;
  /** Closes the database, and ends the thread. */
  close(): Promise<void>;
}

interface PendingCall {
  resolve(value: unknown): void;
  reject(error: DatabaseError): void;
}

/**
 * Starts the thread, which begins to load its engine immediately. Until it is asked to open a folder, it keeps no
 * process alive.
 */
export function startDatabaseThread(isCompiled: boolean): DatabaseThread {
  const worker = startWorker(isCompiled);
  worker.unref();
  const waiting = new Map<number, PendingCall>();
  let questions = 0;
  let notify: (channel: string, payload: string) => void = () => {};

  function settle(number: number, how: (one: PendingCall) => void): void {
    const one = waiting.get(number);
    if (!one) return;
    waiting.delete(number);
    if (waiting.size === 0) worker.unref();
    how(one);
  }
  function take(data: ThreadMessage): void {
    if ("channel" in data) notify(data.channel, data.payload);
    else if ("failure" in data) {
      settle(data.number, (one) => one.reject(new DatabaseError(data.failure.message, data.failure.code)));
    } else settle(data.number, (one) => one.resolve(data.value));
  }
  // All answers of a turn are delivered together, in a later turn, and not while the runtime delivers a message. Code
  // that gets an answer may run an event loop of its own until the next one arrives, as `expect().rejects` of Bun's
  // test runner does. Within a delivery it would wait for ever, because the runtime delivers no other message
  // meanwhile.
  const soon = together();
  worker.onmessage = ({ data }: MessageEvent<ThreadMessage>) => soon(() => take(data));
  const lost = (why: string) => {
    for (const number of [...waiting.keys()]) settle(number, (one) => one.reject(new DatabaseError(why, "XX000")));
  };
  worker.onerror = ({ message }) => lost(`its thread failed: ${message}`);
  worker.addEventListener("close", () => lost("its thread has ended"));

  /** Sends a request to the thread immediately. The process stays alive while an answer is awaited. */
  function ask(work: Work): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const number = questions++;
    if (waiting.size === 0) worker.ref();
    waiting.set(number, { resolve, reject });
    worker.postMessage({ ...work, number } satisfies ThreadQuestion);
    return promise;
  }

  return {
    open: (folder, maySeed) => ask({ ask: "open", folder, maySeed }),
    run: (text, params, form) => ask({ ask: "run", text, params, form }) as Promise<unknown[]>,
    exec: (text) => ask({ ask: "exec", text }),
    onNotification(notified) {
      notify = notified;
    },
    async close() {
      try {
        await ask({ ask: "close" });
      } finally {
        worker.terminate();
      }
    },
  };
}

/**
 * Starts the worker: in the executable by the file name that the build gave it, from source by the name of the file on
 * disk.
 */
function startWorker(isCompiled: boolean): Worker {
  if (isCompiled) return new Worker("./stores/postgres/embedded-worker.ts");
  return new Worker(new URL("./embedded-worker.ts", import.meta.url).href);
}
