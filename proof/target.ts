// A target: what the test needs to know of a gateway. proof/README.md, Adding a target.

import type { Wire } from "./wire.ts";

/** A program of the site (the running gateway with its stores) that can be killed and frozen from outside. */
export interface Part {
  name: string;
  kind: "node" | "store";
  /** Kills the program with SIGKILL. */
  kill(): Promise<void>;
  /** Starts the program again, and waits until it works. */
  start(): Promise<void>;
  /** Stops the program with SIGSTOP; `thaw` continues it with SIGCONT. */
  freeze(): void;
  thaw(): void;
}

/** A connection that can be broken. */
export interface Link {
  /** The two ends of the link, such as `node-1 and its database`. */
  name: string;
  /** The node at one end of the link. Null: every node uses the link. */
  node: string | null;
  wire: Wire;
}

export interface Key {
  id: string;
  secret: string;
}

/** The usage under test: what the gateway says that a key used. */
export interface Usage {
  input_tokens: number;
  output_tokens: number;
}

export interface Site {
  /** The base URLs that clients use, each with a name. */
  nodes: { name: string; url: string }[];
  parts: Part[];
  /** The connections between the gateway and its stores. */
  links: Link[];
  model: string;
  /** Creates a key, with the most output tokens that all its requests together may use; null: no limit. */
  createKey(name: string, output_tokens_max: number | null): Promise<Key>;
  usage(keys: readonly Key[]): Promise<Map<string, Usage>>;
  /** How many requests run, as far as the gateway knows. Null: it does not say. */
  running(): Promise<number | null>;
  /** The ends of the logs, for somebody who looks into a finding. */
  lastWords(): string;
  stop(): Promise<void>;
}

export interface Target {
  name: string;
  version(): Promise<string>;
  /** The gateway's settings that matter here, in one line for the table. */
  settings: string;
  /** The longest time after the last fault until the gateway must have recorded every request. */
  settled_ms_max: number;
  /**
   * How much of a stream may be delivered but not counted when a node dies, according to the gateway's documents: the
   * part that the stream delivers in this time. Zero for a gateway that promises nothing: the finding then says so.
   */
  uncounted_ms_max: number;
  /**
   * How long a node goes on with a stream while it has no store, according to the gateway's documents. If it alone is
   * cut off for longer, another node may give the rest of the limit to other requests. When the first is back, what it
   * delivered is recorded beyond the limit. If it dies before that, these tokens are lost. Zero for a gateway that
   * promises nothing.
   */
  cut_off_ms_max: number;
  /**
   * The share by which a count may be off, according to the gateway's documents, if no usage report of the engine
   * confirms it.
   */
  estimate_share_max: number;
  /** The status of a request that a limit refuses, if it is not 429. */
  limit_status?: number;
  start(engine_url: string): Promise<Site>;
  /**
   * Uses a gateway that is already running, whose clients use this base URL. The returned site has no parts and no
   * links, because the test kills only what it started itself. Absent: the target must be started.
   */
  attach?(url: string): Promise<Site>;
}
