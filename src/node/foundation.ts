/** The values that every builder of a node gets, and the form of a builder's result. */
import type { Configuration, ServerSettings } from "../config/configuration.ts";
import type { Reloadable } from "../config/reload.ts";
import type { Log } from "../core/http/log.ts";
import type { Member } from "../features/workers/member.ts";
import type { Database } from "../stores/postgres/database.ts";

export interface Serving {
  /** The version of this build, with its commit. */
  version: string;
  contractVersion: string;
  /** Whether the program runs as the compiled executable, and not from source. */
  isCompiled: boolean;
  configuration: Reloadable;
  database: Database;
  /** Whether the output goes to a person's screen, where nothing keeps it. */
  isTerminal: boolean;
  /** The user of the operating system, for the audit log. */
  user: string;
  /** Prints text for people to stdout. */
  say(text: string): void;
  /** Resolves with the name of the first signal to stop, or of what else ends this process. */
  stopping: Promise<string>;
  stopAsked(): Promise<string>;
  onReload(reload: () => void): void;
  /** The milliseconds since the configuration file was changed; null: there is none. */
  fileAge_ms(): number | null;
  /** This worker's link to its supervisor; null if this process is the whole node. */
  member: Member | null;
  /** The ports that were opened while the node waited for its database; null: it did not wait. */
  waiting: WaitingPorts | null;
}

/** The ports of a node that waits, or has waited, for its database. */
export interface WaitingPorts {
  /** The settings of the server, with the ports that were found free. */
  server: ServerSettings;
  /**
   * Closes the waiting listeners. Resolves when the ports are free for the node itself, and running requests are
   * answered.
   */
  handOver(): Promise<void>;
}

/** The settings of this process at its start: a worker gets its share of the node's limits. */
export type Settings = Pick<Configuration, "limits" | "metering" | "server" | "storage">;

export interface Foundation {
  serving: Serving;
  settings: Settings;
  log: Log;
  /** Returns a function that logs an event of this name when something outside the process fails. */
  outage(event: string): (cause: unknown) => void;
  /** Called when an engine did not know a model by its name. */
  unknownModel(): void;
}

/** Makes `value` disposable: its disposal disposes of the contents of `ending`, the last first. */
export function disposable<Value extends object>(value: Value, ending: AsyncDisposableStack): Value & AsyncDisposable {
  const begun = ending.move();
  return Object.assign(value, { [Symbol.asyncDispose]: () => begun.disposeAsync() });
}
