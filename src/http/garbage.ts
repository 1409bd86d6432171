/**
 * Collects the garbage of large bodies and long streams. The collector comes by itself when as much again has been asked
 * for as is in use, which may be never; so it is asked when there is much to find. A collection stops the node for some
 * milliseconds, more with all that is in use: so collections have a budget of time, which a burst of large bodies may use
 * up, and which fills up slowly. Rule: docs/design/service.md, Memory in flight.
 */
import { Bucket, type BucketSize } from "../time/bucket.ts";
import type { Collector } from "./collector.ts";

export interface Garbage {
  /** A body of this size was parsed and translated: its text, and its values as the wire had them, are not needed any more. */
  translated(bytes: number): void;
  /** A request has ended that held so many bytes. */
  ended(bytes: number): void;
  /** A request has ended that was open for so long, while so many are. */
  lived(ms: number, open: number): void;
  /** A while has passed, and so many requests are open: what small ones have left is collected, too, where that is quick. */
  passed(open: number): void;
  /**
   * A second has passed, and so many requests are open. Where they are many, what is new is looked through: the runtime asks
   * for that itself each second, but each half minute only after 30 seconds in which the heap kept its size, as it does while
   * streams come and go evenly.
   */
  ticked(open: number): void;
}

export interface GarbageSettings {
  /** Smaller bodies leave little, and the collector comes in time by itself. */
  large_bytes: number;
  /** Bytes of large bodies that have to end before they are collected. */
  ended_bytes: number;
  /** The age from which a request has outlasted a quick collection: only a full one finds it. */
  old_ms: number;
  /** The number of old requests that have to end, and no fewer than are open, before they are collected. */
  old_min: number;
  /** An ended request is still being let go, and another may follow it at once. */
  wait_ms: number;
  /** With more requests open than this, a full collection may take too long to be made without need. */
  open_max: number;
  /** Milliseconds of collecting. */
  budget: BucketSize;
}

const mib = 1024 * 1024;
export const garbageSettings: GarbageSettings = {
  large_bytes: 2 * mib,
  ended_bytes: 16 * mib,
  old_ms: 1000,
  old_min: 1000,
  wait_ms: 250,
  open_max: 128,
  budget: { burst: 1000, per_second: 50 },
};

export function garbage(
  collector: Collector,
  settings = garbageSettings,
  now_ms: () => number = () => performance.now(),
): Garbage {
  const { large_bytes, ended_bytes, old_ms, old_min, wait_ms, open_max } = settings;
  const budget = new Bucket(settings.budget, now_ms());
  let left_bytes = 0;
  let old = 0;
  let isWaiting = false;
  /** Since the last collection. */
  let hasEnded = false;

  const mayCollect = () => budget.tokens(now_ms()) > 0;

  function collectNow(): void {
    const began_ms = now_ms();
    hasEnded = false;
    old = 0;
    collector.collect();
    budget.spend(now_ms() - began_ms, now_ms());
  }

  function collectLater(): void {
    if (isWaiting) return;
    isWaiting = true;
    const waiting = setTimeout(
      () => {
        left_bytes = 0;
        isWaiting = false;
        collectNow();
      },
      mayCollect() ? wait_ms : budget.waitSeconds(now_ms()) * 1000,
    );
    waiting.unref();
  }

  return {
    translated(bytes) {
      if (bytes < large_bytes) return;
      if (mayCollect()) collectNow();
      else collectLater();
    },
    ended(bytes) {
      hasEnded = true;
      if (bytes >= large_bytes) left_bytes += bytes;
      if (left_bytes >= ended_bytes) collectLater();
    },
    lived(ms, open) {
      if (ms < old_ms) return;
      old += 1;
      if (old >= Math.max(old_min, open)) collectLater();
    },
    passed(open) {
      if (hasEnded && open <= open_max && mayCollect()) collectNow();
    },
    ticked(open) {
      if (open > open_max) collector.collectNew();
    },
  };
}
