// The interface of an attack, and the bounds for its effect on a node. A new attack is added to a list in `all.ts`.

import type { UpstreamProtocol } from "../../src/core/upstream/codecs.ts";
import type { Store } from "../faults/stores.ts";
import type { Says } from "./engine.ts";

export interface Attack {
  name: string;
  /** Settings of the attacked node, if the attack needs special ones. */
  node?: NodeOptions;
  /** Whether the attack is part of `npm test`; the others run with `npm run attacks`. */
  isQuick?: boolean;
  /** Sends the attack, and waits until the node has responded to every request or closed its connection. */
  run(target: Target): Promise<Sent>;
  /** The bounds that the attack must keep, given what it sent. If absent, `bodyBounds` applies. */
  bounds?(sent: Sent): Bounds;
}

export interface NodeOptions {
  /** The section `limits` of sluice.yaml, as a YAML flow map. */
  limits?: string;
  answers?: string;
  /** Whether the node has a Postgres of its own, which the attack may freeze or kill. */
  hasDatabase?: boolean;
}

export interface Target {
  url: string;
  /** A key of an organization without limits, for the attacker. */
  key: string;
  /** A key of another organization without limits, for an honest client. */
  neighbourKey: string;
  /** A model that responds to every request, with a context window that no allowed body exceeds. */
  model: string;
  /** A model with a high price, whose engine reports a usage of a billion tokens. */
  lyingModel: string;
  /** A model whose engine sends an endless response as fast as it is read. */
  endlessModel: string;
  /** One model for each protocol, whose engine sends the response that the attack set last by `engineSays`. */
  hostileModels: Readonly<Record<UpstreamProtocol, string>>;
  engineSays(what: Says | null): void;
  pid: number;
  /** Returns the node's log so far. */
  log(): string;
  /** The Postgres of the attacked node, if the node has its own; else null. */
  database: Store | null;
}

/** Counts of the attack's requests, and the responses to them. */
export interface Sent {
  /** The number of bytes sent on the wire. */
  bytes: number;
  /** The total size after decompression, in bytes, of all bodies that were in flight at the same time. */
  unpackedBytes: number;
  /** The responses, each as a status and an error code: `413 request_too_large`. */
  answers: string[];
  /** Problems other than exceeded bounds, as texts. */
  problems?: string[];
}

export interface Bounds {
  /** The longest allowed stop of the event loop: wall-clock time or CPU time of its thread, whichever is less. */
  step_ms: number;
  /** The largest allowed growth of the process's memory. */
  growth_bytes: number;
}

export interface Measured {
  sent: Sent;
  bounds: Bounds;
  step_ms: number;
  /**
   * The slowest GET /livez during the attack, measured by another process. It is only shown in the table, and has no
   * bound, because other work of the machine affects it, too.
   */
  livez_ms: number;
  growth_bytes: number;
  cpu_ms: number;
  took_ms: number;
  /** The exceeded bounds and other problems, as texts; empty if there are none. */
  broken: string[];
}

const mib = 1024 * 1024;
/** The size up to which a body must not slow other requests down noticeably. */
const small_bytes = 4.1 * mib;

/** The memory that an idle node returns to the system, and allocates again for its first large body. */
const idle_bytes = 32 * mib;

/** The bounds for attacks that send bodies (docs/design/service.md, Cost before trust). */
export function bodyBounds({ unpackedBytes }: Sent, largest_bytes = unpackedBytes): Bounds {
  return { step_ms: largest_bytes <= small_bytes ? 50 : 150, growth_bytes: 4 * unpackedBytes + idle_bytes };
}
