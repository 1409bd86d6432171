/** The store's interface for draining and resuming engines (docs/routing.md, Draining an engine). */
import type { Actor } from "../../core/store/directory.ts";
import type { Drain, DrainedEngine, DrainStore } from "../../core/store/drain.ts";

export interface DrainAdministration extends Pick<DrainStore, "listDrains"> {
  /** Drains the engine, and replaces an earlier drain of it. Returns "past" if `until` is not in the future. */
  drain(engine: DrainedEngine, until: Date | null, actor: Actor): Promise<Drain | "past">;
  /**
   * Ends the drain of this replica, or all drains of the upstream if no replica is given. Returns the drains that
   * ended.
   */
  resume(engine: DrainedEngine, actor: Actor): Promise<Drain[]>;
}
