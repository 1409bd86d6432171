// A target: the things that a gateway needs to be put to the test. proof/README.md, Adding a target.

import type { Wire } from "./wire.ts";

/** A program of the site that can be killed and frozen from outside. */
export interface Part {
  name: string;
  kind: "node" | "store";
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again, and waits until it works. */
  start(): Promise<void>;
  /** SIGSTOP and SIGCONT. */
  freeze(): void;
  thaw(): void;
}

/** A connection that can be broken. */
export interface Link {
  /** Its two ends, such as `node-1 and its database`. */
  name: string;
  /** The node at one end. Null: every node uses it. */
  node: string | null;
  wire: Wire;
}

export interface Key {
  id: string;
  secret: string;
}

/** The book under test: what the gateway says that a key used. */
export interface Usage {
  input_tokens: number;
  output_tokens: number;
}

export interface Site {
  /** The base URLs that clients use, each with a name. */
  nodes: { name: string; url: string }[];
  parts: Part[];
  /** Between the gateway and its stores. */
  links: Link[];
  model: string;
  /** A key, which may use so many tokens of output in all. */
  createKey(name: string, output_tokens_max: number | null): Promise<Key>;
  usage(keys: readonly Key[]): Promise<Map<string, Usage>>;
  /** How many requests run as far as the gateway's book knows. Null: it does not say. */
  running(): Promise<number | null>;
  /** The ends of the logs, for somebody who looks into a finding. */
  lastWords(): string;
  stop(): Promise<void>;
}

export interface Target {
  name: string;
  version(): Promise<string>;
  /** Its settings that matter here, in one line for the table. */
  settings: string;
  /** How long after the last fault every request must be in the book. */
  settled_ms_max: number;
  /**
   * How much of a stream its documents say may be delivered and not counted when a node dies, as a time of that stream.
   * Zero for a gateway that promises nothing: the finding then says so.
   */
  uncounted_ms_max: number;
  /**
   * How long a node goes on with a stream, by its documents, while it has no store. If it alone is cut off for longer, another
   * node may give the room away, and what it delivered is booked beyond a limit when it is back. If it dies before it is
   * back, that is lost. Zero for a gateway that promises nothing.
   */
  cut_off_ms_max: number;
  /** By what share its documents say that a count may be off which no report confirms. */
  estimate_share_max: number;
  /** The status of a request that a limit refuses, where that is not 429. */
  limit_status?: number;
  start(engine_url: string): Promise<Site>;
  /**
   * Uses a gateway that runs already, whose clients use this base URL. It has no parts and no links: nothing that is not
   * ours is killed. Absent: the target must be started.
   */
  attach?(url: string): Promise<Site>;
}
