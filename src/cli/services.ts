/** What the CLI cannot name by itself: main.ts hands it in, and tests hand in their own. */
import type { ManagementOptions } from "../auth/acting.ts";
import type { Configuration, StorageSettings } from "../config/configuration.ts";
import type { UpstreamProtocol } from "../upstream/target.ts";
import type { Prompts } from "./prompts.ts";
import type { Terminal } from "./terminal.ts";

export interface Services {
  /** Of this build, such as `0.1.0`. */
  version: string;
  terminal: Terminal;
  environment: Readonly<Record<string, string | undefined>>;
  /** The operating system's name of who runs this: stands in the audit log. */
  user: string;
  nowMs: () => number;
  /** A UUIDv7, dashed. */
  newUuid: () => string;
  /** So many bytes of a cryptographic source. */
  random: (bytes: number) => Uint8Array;
  /** Asked only when the terminal is interactive and something is missing. */
  prompts: () => Promise<Prompts>;

  /** Where data lives, from the environment alone. */
  storage(): StorageSettings;
  /** Environment and sluice.yaml, checked; throws an Error that names line and field. */
  configuration(): Promise<Configuration>;
  /**
   * Opens the database that these settings name, brought to this build's shape where that is safe. Throws an Error whose
   * `code` is `in_use` when another process holds the embedded one.
   */
  openStore(storage: StorageSettings): Promise<OpenStore>;
  /** Brings the database to this build's shape; answers the names of what was applied. */
  migrate(storage: StorageSettings): Promise<string[]>;
  /** One sentence on the state of the database, or of Redis; throws an Error that says what is wrong. */
  inspectDatabase(storage: StorageSettings): Promise<string>;
  inspectRedis(redisUrl: string): Promise<string>;

  /** Asks an engine for its models and drafts a sluice.yaml for it. */
  draftConfiguration(upstream: { url: string; protocol: UpstreamProtocol; apiKey: string | null }): Promise<Draft>;
  /** The contract as it is checked in: JSON text, ending with a line break. */
  openapi(): Promise<string>;

  /** Serves until it is told to stop; answers the exit code. */
  serve(): Promise<number>;
  simulate(options: { host: string; port: number }): Promise<{ url: string; stop(): Promise<void> }>;
  /** Resolves when this process is asked to end (SIGINT, SIGTERM). */
  untilStopped(): Promise<void>;
}

export interface OpenStore extends Pick<ManagementOptions, "administration" | "ledger" | "refused"> {
  /** Tells running nodes that this key or organization changed. */
  changed?: (keyOrOrganizationId: string) => Promise<void>;
  close(): Promise<void>;
}

export interface Draft {
  /** The text of the file. */
  yaml: string;
  /** Public ids of the models found. */
  models: string[];
  /** The JSON Schema that the file's first line names, to stand beside it. */
  schema: string;
}
