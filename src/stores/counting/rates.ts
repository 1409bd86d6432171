/** The arithmetic of stores that count rates: how requests are counted, and how counts become readings and refusals. */
import { limitedOf } from "../../core/store/budget.ts";
import {
  minute_ms,
  type RateAnswer,
  type RateHopeless,
  type RateLimitName,
  type RateLimits,
  type RateReading,
  type RateReadings,
  type RateRefused,
  type RateRequest,
  type RateSubject,
  type Rates,
} from "../../core/store/rates.ts";

/**
 * Rates that one process counts by itself. With `processes`, it may use its share of each limit: the limit divided by
 * that number, rounded up. Without `processes`, it may use the whole limit.
 */
export interface OwnRates extends Rates {
  take(request: RateRequest, processes?: number): Promise<RateAnswer>;
  read(organizationId: string, subjects: readonly RateSubject[], processes?: number): Promise<RateReadings[]>;
}

/**
 * In requests or tokens per minute. If one of the two limits is at most this, each request is counted exactly, in an
 * entry of its own. If both limits are higher, the requests of one second share an entry that ends with the second: the
 * count is never too low, and an entry lasts at most a second too long.
 */
const countedSingly_max = 6_000;

/**
 * Whether each request under these limits has its own entry. The limits of a plan may change at any time: entries of
 * single requests and of whole seconds are counted together.
 */
export function countedSingly({ requestsPerMinute, tokensPerMinute }: RateLimits): boolean {
  return Math.min(requestsPerMinute ?? Infinity, tokensPerMinute ?? Infinity) <= countedSingly_max;
}

/** The limit that the request exceeds by itself, whatever was counted before; null: there is no such limit. */
export function hopelessLimit({ tokens_min, subjects }: RateRequest): RateHopeless | null {
  let smallest: RateHopeless | null = null;
  for (const subject of subjects) {
    const { tokensPerMinute } = subject.limits;
    if (tokensPerMinute === null || tokensPerMinute >= (smallest?.tokensPerMinute ?? tokens_min)) continue;
    smallest = { answer: "never", ...limitedOf(subject), tokensPerMinute };
  }
  return smallest;
}

/** The counts of one subject in a store. */
export interface RateCount {
  /** The numbers of requests and of tokens that count now, including this request if it was counted. */
  requests: number;
  tokens: number;
  /** The time until the last entry (a counted request, or the counted requests of one second) ends. */
  reset_ms: number;
  /** The time until the limit has room for a request that was refused; 0 if it has room now. */
  requestsRetry_ms: number;
  tokensRetry_ms: number;
}

const names = ["requests", "tokens"] as const;
const retryOf = (count: RateCount, name: RateLimitName) =>
  name === "requests" ? count.requestsRetry_ms : count.tokensRetry_ms;

export function readingsOf({ requests, tokens, reset_ms }: RateCount, limits: RateLimits): RateReadings {
  return {
    requests: readingOf(limits.requestsPerMinute, requests, reset_ms),
    tokens: readingOf(limits.tokensPerMinute, tokens, reset_ms),
  };
}

function readingOf(limit: number | null, used: number, reset_ms: number): RateReading | null {
  return limit === null ? null : { limit, remaining: Math.max(0, limit - used), reset_ms: used > 0 ? reset_ms : 0 };
}

/** For each limit, the reading with the least left; if several have equally little, the first of them. */
export function tightestReadings(readings: readonly RateReadings[]): RateReadings {
  return readings.reduce(tighter);
}

function tighter(one: RateReadings, other: RateReadings): RateReadings {
  return { requests: less(one.requests, other.requests), tokens: less(one.tokens, other.tokens) };
}

function less(one: RateReading | null, other: RateReading | null): RateReading | null {
  return one && (!other || one.remaining <= other.remaining) ? one : other;
}

/** For each limit, the reading of the subject that has the least left. `counts` and `subjects` have the same order. */
export function tightestOf(counts: readonly RateCount[], subjects: readonly RateSubject[]): RateReadings {
  return tightestReadings(counts.map((count, place) => readingsOf(count, subjects[place]!.limits)));
}

export function rateRefusal(counts: readonly RateCount[], subjects: readonly RateSubject[]): RateRefused {
  const readings = counts.map((count, place) => readingsOf(count, subjects[place]!.limits));
  let last = { retry_ms: -1, place: 0, limit: "requests" as RateLimitName };
  for (const [place, count] of counts.entries()) {
    for (const limit of names) {
      const retry_ms = retryOf(count, limit);
      if (readings[place]![limit] && retry_ms > last.retry_ms) last = { retry_ms, place, limit };
    }
  }
  return {
    answer: "refused",
    ...limitedOf(subjects[last.place]!),
    limit: last.limit,
    reading: readings[last.place]![last.limit]!,
    // An entry that the requests of one second share may last up to a second beyond a minute. At most a minute is
    // reported.
    retry_ms: Math.min(minute_ms, Math.max(1, last.retry_ms)),
    readings: tightestReadings(readings),
  };
}
