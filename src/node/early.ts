/**
 * Work that begins before anything else is loaded. The embedded database compiles its engine for longer than the
 * service takes to load, and needs no configuration for that.
 */
import { type DatabaseThread, startDatabaseThread } from "../stores/postgres/embedded-thread.ts";
import { isCompiled } from "./build.ts";

export interface Early {
  /** The thread of the embedded database; null if another database is used. */
  databaseThread: DatabaseThread | null;
}

export function beginEarly(environment: NodeJS.ProcessEnv): Early {
  const isServer = environment.DATABASE_URL?.trim() || environment.DATABASE_URL_FILE?.trim();
  return { databaseThread: isServer ? null : startDatabaseThread(isCompiled) };
}
