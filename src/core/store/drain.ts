/** Engines that an operator has drained: they get no new requests (docs/routing.md, Draining an engine). */
import type { Actor } from "./directory.ts";

export interface DrainedEngine {
  /** The name of the upstream in the configuration. */
  upstream: string;
  /** One address of its name; null: all of them. */
  replica: string | null;
}

export interface Drain extends DrainedEngine {
  drainedAt: Date;
  /** Null: until it is resumed. */
  until: Date | null;
  actor: Actor;
}

export interface DrainStore {
  /** The drains that have not ended, by the store's clock, in the order of their names. */
  listDrains(): Promise<Drain[]>;
  /**
   * Calls `changed` after each change, and when one may have been missed. The function that it resolves with stops
   * that.
   */
  listen(changed: () => void): Promise<() => Promise<void>>;
}

export interface DrainAdministration extends Pick<DrainStore, "listDrains"> {
  /** Replaces an earlier drain of the same engine. "past": its end is not in the future. */
  drain(engine: DrainedEngine, until: Date | null, actor: Actor): Promise<Drain | "past">;
  /** Ends the drain of this replica; without a replica, all drains of the upstream. Returns those that ended. */
  resume(engine: DrainedEngine, actor: Actor): Promise<Drain[]>;
}
