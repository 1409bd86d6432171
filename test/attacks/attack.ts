// What an attack is, and the most that it may do to a node. A new attack is a value in a list of `all.ts`.

import type { UpstreamProtocol } from "../../src/core/upstream/codecs.ts";
import type { Store } from "../faults/stores.ts";
import type { Says } from "./engine.ts";

export interface Attack {
  name: string;
  /** Settings of the node to attack, if the attack needs special ones. */
  node?: NodeOptions;
  /** Whether the attack is part of `npm test`; the others run with `npm run attacks`. */
  isQuick?: boolean;
  /** Sends the attack, and waits until the node has answered or closed everything. */
  run(target: Target): Promise<Sent>;
  /** The bounds that the attack must keep, given what it sent. If absent, `bodyBounds` applies. */
  bounds?(sent: Sent): Bounds;
}

export interface NodeOptions {
  /** The sections of sluice.yaml, each written as a flow map. */
  limits?: string;
  answers?: string;
  /** Whether the node has a Postgres of its own, which the attack may freeze or kill. */
  hasDatabase?: boolean;
}

export interface Target {
  url: string;
  /** A key of an organization without limits. */
  key: string;
  /** A key of another organization without limits. */
  neighbourKey: string;
  /** A model that answers every request, with a context that no body fills. */
  model: string;
  /** A model at a high price, whose engine reports a billion tokens. */
  lyingModel: string;
  /** A model whose engine writes as fast as its answer is read, without an end. */
  endlessModel: string;
  /** Models, one for each protocol, whose engines answer with what `engineSays` set last. */
  hostileModels: Readonly<Record<UpstreamProtocol, string>>;
  engineSays(what: Says | null): void;
  pid: number;
  /** What the node has logged so far. */
  log(): string;
  /** The Postgres of the attacked node, if the node has its own; else null. */
  database: Store | null;
}

/** What the attack sent, and the answers to it. */
export interface Sent {
  /** The sent bytes on the wire. */
  bytes: number;
  /** The bytes after decompression of all bodies that were in flight at once. */
  unpackedBytes: number;
  /** The answers' statuses with codes of faults: `413 request_too_large`. */
  answers: string[];
  /** What was wrong, beside exceeded bounds; each in words. */
  problems?: string[];
}

export interface Bounds {
  /** The longest time for which the event loop may stop: wall clock or CPU of its thread, whichever is less. */
  step_ms: number;
  /** The most bytes by which the process may grow. */
  growth_bytes: number;
}

export interface Measured {
  sent: Sent;
  bounds: Bounds;
  step_ms: number;
  /**
   * The slowest GET /livez during the attack, from another process. It is only for the table, since other work of the
   * machine counts in it, too.
   */
  livez_ms: number;
  growth_bytes: number;
  cpu_ms: number;
  took_ms: number;
  /** The exceeded bounds and other problems, in words; empty if there are none. */
  broken: string[];
}

const mib = 1024 * 1024;
/** The largest body that must not slow anything down noticeably. */
const small_bytes = 4.1 * mib;

/** The memory that a node gives back while it idles, and takes again for its first large body. */
const idle_bytes = 32 * mib;

/** The bounds for attacks that send bodies (docs/design/service.md, Cost before trust). */
export function bodyBounds({ unpackedBytes }: Sent, largest_bytes = unpackedBytes): Bounds {
  return { step_ms: largest_bytes <= small_bytes ? 50 : 150, growth_bytes: 4 * unpackedBytes + idle_bytes };
}
