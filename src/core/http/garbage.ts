/**
 * Collects the garbage of large bodies and long streams. The runtime itself collects only when as much again has been
 * allocated as is in use, which may be never. A collection stops the node for some milliseconds, more if much is in
 * use, so collections have a budget of time, which a burst of large bodies may use up and which fills up slowly. Rule:
 * docs/design/runtime.md, Memory.
 */
import { Bucket, type BucketSize } from "../time/bucket.ts";
import type { Collector } from "./collector.ts";

export interface Garbage {
  /** A body of this size was parsed and translated: its text and the values of its protocol are garbage. */
  translated(bytes: number): void;
  /** A request that held this many bytes has ended. */
  ended(bytes: number): void;
  /** A request that was open for `ms` milliseconds has ended, while `open` requests are open. */
  lived(ms: number, open: number): void;
  /**
   * Called at intervals with the number of open requests, to collect the garbage of small requests if that is quick.
   */
  passed(open: number): void;
  /**
   * Called each second with the number of open requests. If there are many, new objects are collected. The runtime
   * itself does that each second; but only each half minute once the heap has kept its size for 30 seconds, as it does
   * while streams come and go evenly.
   */
  ticked(open: number): void;
}

interface GarbageSettings {
  /** Smaller bodies leave little garbage, which the runtime collects in time. */
  large_bytes: number;
  /** The bytes that ended large bodies must have held together before a collection. */
  ended_bytes: number;
  /** The age from which a request has survived the quick collections, so that only a full one frees it. */
  old_ms: number;
  /** The number of old requests that have to end before a collection, at least as many as are open. */
  old_min: number;
  /**
   * The wait between two collections for old requests, as a multiple of what the last one took: every stream stops
   * meanwhile. Without it, 400 old requests a second would cause one of 100 ms each 2.5 seconds, and delay one token in
   * 25.
   */
  old_rest: number;
  /**
   * The wait from the end of a request to a collection: the request is still being released, and another may follow at
   * once.
   */
  wait_ms: number;
  /** With more open requests than this, a full collection may take too long to be made for small garbage. */
  open_max: number;
  /** The budget of time for collections, in milliseconds. */
  budget: BucketSize;
}

const mib = 1024 * 1024;
const garbageSettings: GarbageSettings = {
  large_bytes: 2 * mib,
  ended_bytes: 16 * mib,
  old_ms: 1000,
  old_min: 1000,
  old_rest: 200,
  wait_ms: 250,
  open_max: 128,
  budget: { burst: 1000, per_second: 50 },
};

export function garbage(
  collector: Collector,
  settings = garbageSettings,
  now_ms: () => number = () => performance.now(),
): Garbage {
  const { large_bytes, ended_bytes, old_ms, old_min, old_rest, wait_ms, open_max } = settings;
  const budget = new Bucket(settings.budget, now_ms());
  /** The bytes of large bodies that have ended since the last collection. */
  let left_bytes = 0;
  let old = 0;
  /** The moment from which old requests may cause a collection again. */
  let rested_ms = Number.NEGATIVE_INFINITY;
  let isWaiting = false;
  /** Whether a request has ended since the last collection. */
  let hasEnded = false;

  const mayCollect = () => budget.tokens(now_ms()) > 0;

  function collectNow(): void {
    const began_ms = now_ms();
    hasEnded = false;
    old = 0;
    collector.collect();
    const ended_ms = now_ms();
    const took_ms = ended_ms - began_ms;
    budget.spend(took_ms, ended_ms);
    rested_ms = ended_ms + took_ms * old_rest;
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
      if (old >= Math.max(old_min, open) && now_ms() >= rested_ms) collectLater();
    },
    passed(open) {
      if (hasEnded && open <= open_max && mayCollect()) collectNow();
    },
    ticked(open) {
      if (open > open_max) collector.collectNew();
    },
  };
}
