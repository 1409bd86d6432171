// What an attack is, and what it may do to a node at most. A new one is a value in a list of `all.ts`.

import type { UpstreamProtocol } from "../../src/core/upstream/codecs.ts";
import type { Store } from "../faults/stores.ts";
import type { Says } from "./engine.ts";

export interface Attack {
  name: string;
  /** Of the node that it needs, if not of any. */
  node?: NodeOptions;
  /** Part of `npm test`; the others run with `npm run attacks`. */
  isQuick?: boolean;
  /** Sends whatever it sends, and waits until the node has answered it or has closed. */
  run(target: Target): Promise<Sent>;
  /** What it may do, given what it sent; else that of the bodies (bounds.ts). */
  bounds?(sent: Sent): Bounds;
}

export interface NodeOptions {
  /** As sluice.yaml writes them, each a flow map. */
  limits?: string;
  answers?: string;
  /** A Postgres of its own, that the attack may freeze or kill. */
  hasDatabase?: boolean;
}

export interface Target {
  url: string;
  /** Of an organization without limits. */
  key: string;
  /** Of another organization without limits. */
  neighbourKey: string;
  /** Serves everything, with a context that no body fills. */
  model: string;
  /** Its engine reports a billion tokens, at a dear price. */
  lyingModel: string;
  /** Its engine writes for as long as it is read, as fast as it can. */
  endlessModel: string;
  /** Their engines say what `engineSays` was told last, each in its protocol. */
  hostileModels: Readonly<Record<UpstreamProtocol, string>>;
  engineSays(what: Says | null): void;
  pid: number;
  /** What the node has logged so far. */
  log(): string;
  /** Null where the node keeps its own. */
  database: Store | null;
}

/** What it cost the attacker, and what came back. */
export interface Sent {
  /** Over the wire. */
  bytes: number;
  /** After decompression, of all bodies that were in flight at once. */
  unpackedBytes: number;
  /** Statuses, and codes of faults: `413 request_too_large`. */
  answers: string[];
  /** What is not as it has to be, beside the bounds; each in words. */
  problems?: string[];
}

export interface Bounds {
  /** The longest that the event loop may stand still: wall clock or CPU of its thread, whichever is less. */
  step_ms: number;
  /** By how much the process may grow. */
  growth_bytes: number;
}

export interface Measured {
  sent: Sent;
  bounds: Bounds;
  step_ms: number;
  /** The slowest GET /livez beside it, from another process. For the table: what else the machine does counts in it. */
  livez_ms: number;
  growth_bytes: number;
  cpu_ms: number;
  took_ms: number;
  /** What is beyond its bound, in words; none where it held. */
  broken: string[];
}

const mib = 1024 * 1024;
/** The largest that must not be felt at all. */
const small_bytes = 4.1 * mib;

/** The memory that a node gives back while it idles, and takes again for its first large body. */
const idle_bytes = 32 * mib;

/** docs/design/service.md, Cost before trust. */
export function bodyBounds({ unpackedBytes }: Sent, largest_bytes = unpackedBytes): Bounds {
  return { step_ms: largest_bytes <= small_bytes ? 50 : 150, growth_bytes: 4 * unpackedBytes + idle_bytes };
}
