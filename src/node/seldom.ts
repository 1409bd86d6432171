/** Limits how often something that may recur with every request is repeated, such as a line in the log. */
import type { Clock } from "../core/time/clock.ts";

/**
 * The most things that are remembered at once. While this many are within their interval, the function is false for any
 * further thing.
 */
const things_max = 1000;

/** Returns a function that is true for each thing at most once in `interval_ms`. */
export function seldom(interval_ms: number, clock: Pick<Clock, "now_ms">): (thing: string) => boolean {
  /** For each thing, when the function last returned true; the oldest first. */
  const said_ms = new Map<string, number>();
  return (thing) => {
    const now_ms = clock.now_ms();
    for (const [old, at_ms] of said_ms) {
      if (now_ms - at_ms < interval_ms) break;
      said_ms.delete(old);
    }
    if (said_ms.has(thing) || said_ms.size >= things_max) return false;
    said_ms.set(thing, now_ms);
    return true;
  };
}
