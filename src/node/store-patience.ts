/**
 * How long requests wait for the store. The embedded database is cold when it starts: its code is compiled while it runs,
 * which on a busy machine takes seconds. No other node could answer sooner, so in that time a request waits and isn't
 * refused (docs/design/runtime.md, A cold embedded database).
 */
import type { Database } from "../postgres/database.ts";
import type { Clock } from "../time/clock.ts";

/** How long after its start the embedded database counts as cold. */
const cold_ms = 15_000;
/** How long a request waits for it then, at least. */
const wait_cold_ms = 15_000;

/** Made when the store starts; what it returns maps the usual wait to the one of this moment, both in milliseconds. */
export function storePatience(kind: Database["kind"], clock: Pick<Clock, "now_ms">): (usual_ms: number) => number {
  const cold_until_ms = kind === "pglite" ? clock.now_ms() + cold_ms : Number.NEGATIVE_INFINITY;
  return (usual_ms) => (clock.now_ms() < cold_until_ms ? Math.max(usual_ms, wait_cold_ms) : usual_ms);
}
