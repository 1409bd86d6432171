/** The dependencies of the CLI: main.ts passes them in, and tests pass their own. */

import type { Configuration, StorageSettings } from "../../config/configuration.ts";
import type { InitEngine } from "../../config/init.ts";
import type { MachineRoom } from "../../config/workers.ts";
import type { UpstreamProtocol } from "../../core/upstream/codecs.ts";
import type { ManagementStores } from "../management/context.ts";
import type { SeenCertificate } from "./certificates.ts";
import type { Prompts } from "./prompts.ts";
import type { Terminal } from "./terminal.ts";

/** The context that every command gets. */
export interface CommandContext {
  services: Services;
  /** Sets the exit code, for a command that succeeds and yet ends with a code other than 0. */
  exitWith: (code: number) => void;
}

/** The names of the migrations that were applied, and of those of a newer version that the database has beside them. */
export interface Migrations {
  applied: string[];
  newer: string[];
}

export interface Services {
  /** The version of this build, such as `0.2.0`. */
  version: string;
  /** The name of the newest migration that this build knows. */
  schema(): Promise<string>;
  /** The command that starts this program. */
  program: readonly [string, ...string[]];
  terminal: Terminal;
  environment: Readonly<Record<string, string | undefined>>;
  /** The operating system's user, for the audit log. */
  user: string;
  now_ms: () => number;
  /** Makes a UUIDv7, with dashes. */
  newUuid: () => string;
  /** Random bytes from a cryptographic source. */
  random: (bytes: number) => Uint8Array;
  /** Loads the prompts. Called only if the terminal is interactive and a value is missing. */
  prompts: () => Promise<Prompts>;

  /** The storage settings, which are read from the environment and not from sluice.yaml. */
  storage(): StorageSettings;
  /** The validated configuration, from the environment and sluice.yaml. Throws an Error that names line and field. */
  configuration(): Promise<Configuration>;
  /**
   * Opens the database of these settings; a missing embedded database is created. Throws an Error if its schema is
   * older or newer than this build's, and an Error whose `code` is `in_use` if another process holds the embedded
   * database.
   */
  openStore(storage: StorageSettings): Promise<OpenStore>;
  /** Migrates the database. Throws an Error if this build cannot use it. */
  migrate(storage: StorageSettings): Promise<Migrations>;
  /**
   * How a schema of these migrations compares with this build's. `newer`: those of a newer version, if this build can use
   * the database all the same.
   */
  compareSchema(applied: readonly AppliedMigration[]): Promise<Inspection["schema"] & Pick<Migrations, "newer">>;
  inspectDatabase(storage: StorageSettings): Promise<Inspection>;
  /** One sentence on the state of Redis; throws an Error that says what is wrong. */
  inspectRedis(redisUrl: string): Promise<string>;
  /** The memory and cores of this machine that the workers of a node may use. */
  room(configuration: Configuration): MachineRoom;
  /** The number of file descriptors that a process may open; null if the system does not report it. */
  descriptorLimit(): number | null;
  /** The addresses of this machine's network interfaces. */
  addresses(): readonly string[];
  /** The certificates of this server and of the servers that it calls; certificates that cannot be read are missing. */
  certificates(configuration: Configuration): Promise<SeenCertificate[]>;

  /** Asks engines for their models and drafts a sluice.yaml for them. */
  draftConfiguration(engines: readonly InitEngine[], protocol: UpstreamProtocol): Promise<Draft>;
  /** The OpenAPI document, the same text as in the repository: JSON that ends with a line break. */
  openapi(of: "api" | "management"): Promise<string>;

  /**
   * Serves until stopped; returns the exit code. `migrate`: whether it may migrate the database, if the settings allow
   * that too. `waitForDatabase_ms`: the time for which it waits for Postgres; absent: the time in the settings.
   * `worker`: the number of this process among the workers of a node; absent: this process is the whole node.
   */
  serve(options: { migrate: boolean; waitForDatabase_ms?: number; worker?: number }): Promise<number>;
  simulate(options: { host: string; port: number }): Promise<{ url: string; stop(): Promise<void> }>;
  /** Resolves when this process is asked to end (SIGINT, SIGTERM). */
  untilStopped(): Promise<void>;
}

export interface AppliedMigration {
  name: string;
  checksum: string;
  additive: boolean;
}

export interface Inspection {
  /** The outcome of the inspection in one sentence. */
  says: string;
  /** The comparison of the database's schema with this build's; `problem` is null if both are the same. */
  schema: { is: "current" | "older" | "newer" | "outdated" | "other"; problem: string | null };
  /**
   * The reason why nobody can administer the service now or soon; null: somebody can, or the schema is not this
   * build's.
   */
  administrators: string | null;
  /** The number of the fleet's processes that report themselves; 0 if the schema is not this build's. */
  processes: number;
}

export interface OpenStore extends ManagementStores {
  /**
   * The currency in which the database counts; null: no node has started with this database. Absent: the
   * configuration's currency.
   */
  currency?(): Promise<string | null>;
  close(): Promise<void>;
}

export interface Draft {
  /** The text of the drafted sluice.yaml. */
  yaml: string;
  /** Public ids of the models that the engines listed. */
  models: string[];
  /** The JSON Schema that the first line of the file names, to be written beside it. */
  schema: string;
}
