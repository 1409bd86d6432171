/**
 * Counts the requests of a key before their bodies are read, because a request that is refused later has cost a parse
 * that the plan's limits do not count. Each key and purpose has a bucket that fills up within a minute, on this node
 * alone. Rules: docs/design/service.md, Cost before trust.
 */

import { Fault } from "../inference/fault.ts";
import { grouped } from "../inference/money.ts";
import type { Plan } from "../store/plan.ts";

/** The purpose of a request. Token counts have a bucket of their own, because agents send two dozen at once. */
export type Purpose = "inference" | "count";

export interface Arrivals {
  /**
   * Counts a request of the key. Throws `rate_limit_exceeded` if there are too many. `plan` is the plan of the key's
   * organization, if it has one.
   */
  take(keyId: string, purpose: Purpose, plan: Pick<Plan, "requestsPerMinute"> | undefined): void;
}

/** A key may attempt this many times as many requests per minute as the plan allows. */
const timesThePlan = 10;
export const arrivalsPerMinute_min: Record<Purpose, number> = { inference: 600, count: 1200 };

interface Bucket {
  left: number;
  at_ms: number;
}

const minute_ms = 60_000;

/** Makes the counter of requests for one node. `now_ms`: a monotonic clock. */
export function arrivals(now_ms: () => number): Arrivals {
  const buckets = new Map<string, Bucket>();
  let swept_ms = now_ms();

  /** Drops the buckets that were not used for a minute: they are full again. */
  function sweep(at_ms: number): void {
    if (at_ms - swept_ms < minute_ms) return;
    swept_ms = at_ms;
    for (const [name, bucket] of buckets) if (at_ms - bucket.at_ms >= minute_ms) buckets.delete(name);
  }

  return {
    take(keyId, purpose, plan) {
      const perMinute = limitOf(purpose, plan);
      if (perMinute === null) return;
      const at_ms = now_ms();
      sweep(at_ms);
      const name = `${purpose} ${keyId}`;
      const bucket = buckets.get(name) ?? { left: perMinute, at_ms };
      buckets.set(name, bucket);
      bucket.left = Math.min(perMinute, bucket.left + ((at_ms - bucket.at_ms) * perMinute) / minute_ms);
      bucket.at_ms = at_ms;
      if (bucket.left < 1) throw tooMany(perMinute, ((1 - bucket.left) * minute_ms) / perMinute);
      bucket.left -= 1;
    },
  };
}

/**
 * The most requests of a key per minute; null if the plan does not limit requests: then the attempts of the key are not
 * limited either. Token counts are always limited: they cost the caller nothing, and no other limit applies to them.
 */
function limitOf(purpose: Purpose, plan: Pick<Plan, "requestsPerMinute"> | undefined): number | null {
  const least = arrivalsPerMinute_min[purpose];
  if (plan === undefined) return least;
  if (plan.requestsPerMinute === null) return purpose === "count" ? least : null;
  return Math.max(least, timesThePlan * plan.requestsPerMinute);
}

function tooMany(perMinute: number, wait_ms: number): Fault {
  const seconds = Math.max(1, Math.ceil(wait_ms / 1000));
  return new Fault(
    "rate_limit_exceeded",
    `This key sends more than ${grouped(perMinute)} requests a minute, refused ones included. Try again in ${seconds} s.`,
    { retryAfterSeconds: seconds },
  );
}
