/** Engines that an operator has drained: they get no new requests (docs/routing.md, Draining an engine). */
import type { Actor } from "./directory.ts";

export interface DrainedEngine {
  upstream: string;
  /** One address of the upstream's host name; null: all of them. */
  replica: string | null;
}

export interface Drain extends DrainedEngine {
  drainedAt: Date;
  /** When the drain ends by itself; null: only when an operator resumes the engine. */
  until: Date | null;
  actor: Actor;
}

export interface DrainStore {
  /** The drains that have not ended, by the store's clock, in the order of their names. */
  listDrains(): Promise<Drain[]>;
  /**
   * Calls `changed` after each change of the drains, and whenever a change may have been missed. Resolves with a
   * function that ends the calls.
   */
  listen(changed: () => void): Promise<() => Promise<void>>;
}
