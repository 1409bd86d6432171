/**
 * The worker of the embedded database. PGlite works synchronously, for milliseconds and sometimes for hundreds of them,
 * so it has a thread of its own: streams depend on the event loop, which must not wait for it. Requests are answered
 * one by one, in order. This is an entry point (scripts/build.ts).
 */
import { fullGC } from "bun:jsc";
import type { PGlite } from "@electric-sql/pglite";
import { DatabaseError } from "./database-error.ts";
import { openFiles } from "./embedded-files.ts";
import type { Failure, Statement, ThreadMessage, ThreadQuestion } from "./embedded-thread.ts";
import { loadEngine } from "./engine.ts";
import { parsers } from "./values.ts";

declare const self: {
  onmessage: ((event: { data: ThreadQuestion }) => void) | null;
  postMessage(answer: ThreadMessage): void;
};

function main(): void {
  // Compiling the engine takes longest, and needs no folder. If it fails, the call of `open` gets the error.
  const engine = loadEngine();
  engine.catch(() => {});
  let pglite: PGlite | undefined;
  let last: Promise<void> = Promise.resolve();

  async function answerTo({ number, ...question }: ThreadQuestion): Promise<ThreadMessage> {
    try {
      if (question.ask === "open") {
        pglite = await openFiles(await engine, question.folder, question.maySeed);
        pglite.onNotification((channel, payload) => self.postMessage({ channel, payload }));
        return { number, value: null };
      }
      if (!pglite) throw new DatabaseError("the database is not open", "unavailable");
      if (question.ask === "run") return { number, value: await rowsOf(pglite, question) };
      if (question.ask === "exec") await pglite.exec(question.text);
      else await pglite.close();
      return { number, value: null };
    } catch (error) {
      return { number, failure: failureOf(error) };
    }
  }

  /** The total length, in code units, of the statements since the last garbage collection. */
  let carried = 0;

  self.onmessage = ({ data }) => {
    last = last.then(async () => {
      const answer = await answerTo(data);
      self.postMessage(answer);
      carried += sizeOf(data, answer);
      if (carried < carried_max) return;
      carried = 0;
      fullGC();
    });
  };
}

/**
 * The engine leaves garbage of several times the length of statements, which the runtime would collect only after some
 * hundred MiB. So a collection is run here after statements of this length.
 */
const carried_max = 16 * 1024 * 1024;

function sizeOf(question: ThreadQuestion, answer: ThreadMessage): number {
  if (question.ask !== "run") return 0;
  let size = lengthOf(question.params);
  if ("value" in answer) for (const row of answer.value as object[]) size += lengthOf(Object.values(row));
  return size;
}

function lengthOf(values: readonly unknown[]): number {
  return values.reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 0), 0);
}

async function rowsOf(pglite: PGlite, { text, params, form }: Statement): Promise<unknown[]> {
  const rowMode = form === "arrays" ? "array" : "object";
  const { rows } = await pglite.query(text, params, { rowMode, serializers, parsers: ours });
  return rows;
}

/**
 * The `Failure` that reports an error. An error without a SQLSTATE is a failure of the engine itself, and not an error
 * of Postgres.
 */
function failureOf(error: unknown): Failure {
  if (error instanceof DatabaseError) return { message: error.message, code: error.code };
  if (!(error instanceof Error)) return { message: String(error), code: internal_error };
  const isPostgres = "code" in error && "severity" in error && typeof error.code === "string";
  return { message: error.message, code: isPostgres ? (error.code as string) : internal_error };
}

const internal_error = "XX000";
const ours = Object.fromEntries(parsers);
/** Parameters are texts already, so no serializer of a type may change them. */
const serializers = new Proxy<Record<number, (value: string) => string>>({}, { get: () => String });

main();
