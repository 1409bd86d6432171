// The interface of a target, which is a gateway under test. proof/README.md, Adding a target.

import type { Wire } from "./wire.ts";

/** A program of the site (the running gateway with its stores), which the test can kill and freeze. */
export interface Part {
  name: string;
  kind: "node" | "store";
  /** Kills the program with SIGKILL. */
  kill(): Promise<void>;
  /** Starts the program after a kill, and waits until it works. */
  start(): Promise<void>;
  /** Stops the program with SIGSTOP; `thaw` continues it with SIGCONT. */
  freeze(): void;
  thaw(): void;
}

/** A connection that the test can break. */
export interface Link {
  /** The names of the two ends of the link, such as `node-1 and its database`. */
  name: string;
  /** The name of the node at one end of the link. Null: all nodes use the link. */
  node: string | null;
  wire: Wire;
}

export interface Key {
  id: string;
  secret: string;
}

/** The usage that the gateway reports for a key, which is what the test checks. */
export interface Usage {
  input_tokens: number;
  output_tokens: number;
}

export interface Site {
  /** The base URLs that clients use, each with a node's name. */
  nodes: { name: string; url: string }[];
  parts: Part[];
  /** The connections between the gateway and its stores. */
  links: Link[];
  model: string;
  /** Creates a key with a limit on the output tokens of all its requests together; null: no limit. */
  createKey(name: string, output_tokens_max: number | null): Promise<Key>;
  usage(keys: readonly Key[]): Promise<Map<string, Usage>>;
  /** The number of running requests, according to the gateway. Null: it does not report that. */
  running(): Promise<number | null>;
  /** The ends of the programs' logs, for a person who investigates a finding. */
  lastWords(): string;
  stop(): Promise<void>;
}

export interface Target {
  name: string;
  version(): Promise<string>;
  /** The gateway's settings that matter for this test, in one line for the table. */
  settings: string;
  /** The longest time after the last fault until the gateway must have recorded every request, in milliseconds. */
  settled_ms_max: number;
  /**
   * How much of a stream may be delivered but not counted when a node dies, according to the gateway's documents, as
   * milliseconds of the stream's delivery. Zero for a gateway that promises nothing; its findings then say so.
   */
  uncounted_ms_max: number;
  /**
   * How long a node continues a stream without a store, according to the gateway's documents. If the node alone is cut
   * off for longer, another node may give the rest of the limit to other requests. When the first node is back, the
   * tokens that it delivered are recorded beyond the limit. If it dies before that, these tokens are lost. Zero for a
   * gateway that promises nothing.
   */
  cut_off_ms_max: number;
  /**
   * The share by which a count may be wrong, according to the gateway's documents, if no usage report of the engine
   * confirms it.
   */
  estimate_share_max: number;
  /** The status of a request that a limit refuses, if it is not 429. */
  limit_status?: number;
  start(engine_url: string): Promise<Site>;
  /**
   * Uses a gateway that is already running, at this base URL for clients. The returned site has no programs and no
   * links, because the test kills only what it has started. Absent if the target must be started.
   */
  attach?(url: string): Promise<Site>;
}
