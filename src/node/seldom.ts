/** Limits how often something that may recur with every request is repeated, such as a line in the log. */
import type { Clock } from "../core/time/clock.ts";

/** The most things that are remembered. The returned function is false for any further thing. */
const things_max = 1000;

/** Returns a function that is true for each thing at most once in `interval_ms`. */
export function seldom(interval_ms: number, clock: Pick<Clock, "now_ms">): (thing: string) => boolean {
  const said_ms = new Map<string, number>();
  return (thing) => {
    const now_ms = clock.now_ms();
    const before_ms = said_ms.get(thing);
    if (before_ms === undefined ? said_ms.size >= things_max : now_ms - before_ms < interval_ms) return false;
    said_ms.set(thing, now_ms);
    return true;
  };
}
