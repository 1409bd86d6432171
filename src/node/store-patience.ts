/**
 * How long requests wait for the store. The embedded database is cold when it starts: its code is compiled while it
 * runs, which takes seconds on a busy machine. No other node could answer sooner, so a request then waits instead of
 * being refused (docs/design/runtime.md, A cold embedded database).
 */

import type { Clock } from "../core/time/clock.ts";
import type { Database } from "../stores/postgres/database.ts";

/** How long after its start the embedded database counts as cold. */
const cold_ms = 15_000;
/** The least time that a request waits for the embedded database while it is cold. */
const wait_cold_ms = 15_000;

/**
 * Call it when the store starts. Returns a function that takes the usual wait and returns the current one, in
 * milliseconds.
 */
export function storePatience(kind: Database["kind"], clock: Pick<Clock, "now_ms">): (usual_ms: number) => number {
  const cold_until_ms = kind === "pglite" ? clock.now_ms() + cold_ms : Number.NEGATIVE_INFINITY;
  return (usual_ms) => (clock.now_ms() < cold_until_ms ? Math.max(usual_ms, wait_cold_ms) : usual_ms);
}
