/** The values that every builder of a node takes, and the form in which a builder returns its result. */
import type { Configuration, ServerSettings } from "../config/configuration.ts";
import type { Reloadable } from "../config/reload.ts";
import type { Log } from "../core/http/log.ts";
import type { Member } from "../features/workers/member.ts";
import type { Database } from "../stores/postgres/database.ts";

export interface Serving {
  /** The version of this build, with its commit. */
  version: string;
  contractVersion: string;
  /** Whether this is the executable, and not run from source. */
  isCompiled: boolean;
  configuration: Reloadable;
  database: Database;
  /** Whether only a person sees the output, and nothing keeps it. */
  isTerminal: boolean;
  /** The system's user, for the audit log. */
  user: string;
  /** Prints for people, to stdout. */
  say(text: string): void;
  /** Resolves with the name of the signal to stop. */
  stopping: Promise<NodeJS.Signals>;
  /** Resolves with that of a further one. */
  stopAsked(): Promise<NodeJS.Signals>;
  onReload(reload: () => void): void;
  /** How long ago the configuration file was changed; null: there is none. */
  fileAge_ms(): number | null;
  /** Null if this process is the whole node. */
  member: Member | null;
  /** Has the ports until the node listens, because it waited for its database. Null: it did not. */
  waiting: WaitingPorts | null;
}

/** The ports of a node that waits for its database, or has waited. */
export interface WaitingPorts {
  /** The settings of the server, with the ports that were free. */
  server: ServerSettings;
  /** Resolves when the ports are free for the node itself. Requests that run are answered. */
  handOver(): Promise<void>;
}

/** The settings of this process at its start: a worker has its share of the node's. */
export type Settings = Pick<Configuration, "limits" | "metering" | "server" | "storage">;

export interface Foundation {
  serving: Serving;
  settings: Settings;
  log: Log;
  /** Logs an event with this name when something outside the process fails. */
  outage(event: string): (cause: unknown) => void;
}

/** Returns `value` as a disposable that ends the contents of `ending`, the last begun first. */
export function disposable<Value extends object>(value: Value, ending: AsyncDisposableStack): Value & AsyncDisposable {
  const begun = ending.move();
  return Object.assign(value, { [Symbol.asyncDispose]: () => begun.disposeAsync() });
}
