/**
 * Collects the garbage of large bodies and long streams. The runtime itself collects only when as much again has been
 * allocated as is in use, which may never happen. A collection stops the node for some milliseconds, more if much is in
 * use, so collections have a budget of time, which a burst of large bodies may use up and which fills up slowly. Rule:
 * docs/design/runtime.md, Memory.
 *
 * Measures how close the process is to the machine's limits of memory and descriptors, a few times a second.
 */

import { fullGC } from "bun:jsc";
import { Bucket } from "../time/bucket.ts";

export interface Garbage {
  /** Called when a body of this size was parsed and translated: its text and the values of its protocol are garbage. */
  translated(bytes: number): void;
  /** Called when a request that held this many bytes has ended. */
  ended(bytes: number): void;
  /** Called when a request that was open for `ms` milliseconds has ended, while `open` requests are open. */
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

const mib = 1024 * 1024;
const garbageSettings = {
  /** The least size of a large body. Smaller ones leave little garbage, which the runtime collects in time. */
  large_bytes: 2 * mib,
  /** The bytes that requests with large bodies must have held, added up as they end, before a collection. */
  ended_bytes: 16 * mib,
  /** Requests of this age have survived the quick collections, so only a full collection frees them. */
  old_ms: 1000,
  /**
   * The least number of old requests that must have ended before a collection. If more than this number are open, as
   * many must have ended as are open.
   */
  old_min: 1000,
  /**
   * The wait between two collections for old requests, as a multiple of the last collection's duration, because every
   * stream stops during a collection. Without the wait, 400 old requests a second would cause a collection of 100 ms
   * each 2.5 seconds, and delay one token in 25.
   */
  old_rest: 200,
  /**
   * The wait from the end of a request to a collection: the request is still being released, and another request may
   * follow immediately.
   */
  wait_ms: 250,
  /** With more open requests than this, a full collection may take too long to be made for small garbage. */
  open_max: 128,
  /** The time for collections, in milliseconds. */
  budget: { burst: 1000, per_second: 50 },
};

export function garbage(
  collector: Collector,
  settings = garbageSettings,
  now_ms: () => number = () => performance.now(),
): Garbage {
  const { large_bytes, ended_bytes, old_ms, old_min, old_rest, wait_ms, open_max } = settings;
  const budget = new Bucket(settings.budget, now_ms());
  /** The bytes that requests with large bodies held, added up over those that have ended since the last collection. */
  let left_bytes = 0;
  let old = 0;
  /** The moment from which old requests may cause a collection again. */
  let rested_ms = Number.NEGATIVE_INFINITY;
  let isWaiting = false;
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

/** How long a measured value is reused, because each measurement costs a system call or two. */
const look_ms = 100;
/** While the process's memory is above `memory_bytes`, a collection is requested at most this often. */
const collect_ms = 5_000;

export interface Machine {
  residentBytes(): number;
  /** Frees unused memory, which takes some milliseconds. */
  collect(): void;
  /** The number of the lowest free descriptor: at least that many are open. */
  lowestFreeDescriptor(): number;
}

export interface Pressure {
  /** Whether the process is above its high-water mark of memory. */
  memoryIsHigh(): boolean;
  /** Whether so few descriptors are left that connections have to be closed. */
  descriptorsAreFew(): boolean;
}

export interface PressureLimits {
  memory_bytes: number;
  /** The most descriptors that the process may open; null if unknown. */
  descriptors_max: number | null;
}

/** The descriptors that are reserved for engines, stores and probes: a sixteenth, from 32 to 512. */
export function descriptorsKept(descriptors_max: number): number {
  return Math.min(512, Math.max(32, Math.floor(descriptors_max / 16)));
}

export function pressure(limits: PressureLimits, machine: Machine, now_ms: () => number): Pressure {
  const { memory_bytes, descriptors_max } = limits;
  const isFull =
    descriptors_max === null
      ? () => false
      : () => machine.lowestFreeDescriptor() >= descriptors_max - descriptorsKept(descriptors_max);
  let collected_ms = Number.NEGATIVE_INFINITY;

  // Whether memory is above `memory_bytes`. If so, a collection is made, because memory that was freed long ago may
  // count as resident until then.
  function isHigh(): boolean {
    if (machine.residentBytes() <= memory_bytes) return false;
    if (now_ms() - collected_ms >= collect_ms) {
      collected_ms = now_ms();
      machine.collect();
    }
    return true;
  }

  return { memoryIsHigh: lookedAt(isHigh, now_ms), descriptorsAreFew: lookedAt(isFull, now_ms) };
}

function lookedAt(look: () => boolean, now_ms: () => number): () => boolean {
  let seen_ms = Number.NEGATIVE_INFINITY;
  let seen = false;
  return () => {
    if (now_ms() - seen_ms < look_ms) return seen;
    seen_ms = now_ms();
    seen = look();
    return seen;
  };
}

/** The runtime's garbage collector, as far as the node uses it. Rule: docs/design/runtime.md, Memory. */
export interface Collector {
  /** A full collection, which frees objects of any age. It takes some milliseconds. */
  collect(): void;
  /** A collection of new objects only, mostly in parallel: one or two milliseconds. */
  collectNew(): void;
}

export const runtimeCollector: Collector = {
  collect: fullGC,
  collectNew: () => void Bun.gc(false),
};
