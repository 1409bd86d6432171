/**
 * Sliding rates: a request, and its tokens, count for the 60 seconds that follow it. The store's clock decides, in whole
 * milliseconds, and intervals are half-open: what was taken at t counts until just before t + 60 s. Rules:
 * docs/design/usage.md, Sliding limits; docs/design/metering.md, Sliding limits in stores.
 */

/** Null does not limit. */
export interface RateLimits {
  requestsPerMinute: number | null;
  tokensPerMinute: number | null;
}

export interface RateRequest {
  organizationId: string;
  requestId: string;
  /** What it may come to, until that is corrected, and the least with which it may begin: what is left is taken, if that is between them. */
  tokens: number;
  tokens_min: number;
  limits: RateLimits;
  /**
   * How long ago requests were last counted elsewhere, and not here; absent: not within the last minute. A store that
   * can know what it missed looks it up.
   */
  elsewhere_ms?: number;
}

/** One limit after a decision, this request counted where it was taken. */
export interface RateReading {
  limit: number;
  remaining: number;
  /** Until the limit is whole again, if nothing more is taken. */
  reset_ms: number;
}
/** Null: the plan does not limit it. */
export interface RateReadings {
  requests: RateReading | null;
  tokens: RateReading | null;
}
export type RateLimitName = keyof RateReadings;

export type RateAnswer = RateTaken | RateRefused | RateHopeless;

export interface RateTaken {
  answer: "taken";
  readings: RateReadings;
  /** The request does not run after all, and leaves no trace. At most one call; never rejects; nobody need wait for it. */
  giveBack(): Promise<void>;
  /** What it really came to. At most one call; never rejects; nobody need wait for it. */
  correct(tokens: number): Promise<void>;
}
export interface RateRefused {
  answer: "refused";
  /** Of two full limits, the one that has room last. */
  limit: RateLimitName;
  /** Until there is room for it, if nothing more is taken: above 0, at most 60,000. */
  retry_ms: number;
  readings: RateReadings;
}
/** The least of the request alone is above the whole limit. */
export interface RateHopeless {
  answer: "never";
  limit: RateLimitName;
}

export interface Rates {
  /** Counts a request, or refuses it and counts nothing. Rejects when the store is away: then nobody knows. */
  take(request: RateRequest): Promise<RateAnswer>;
  close(): Promise<void>;
}

export const minute_ms = 60_000;

/**
 * Up to this limit (100 a second) each request is counted by itself, exactly. Where both limits are higher, requests
 * share an entry for each second that ends with it: never too many, and at most a second strict.
 */
const countedSingly_max = 6_000;

/** How requests under these limits are counted; entries of both kinds count together, so that a plan may change. */
export function countedSingly({ requestsPerMinute, tokensPerMinute }: RateLimits): boolean {
  return Math.min(requestsPerMinute ?? Infinity, tokensPerMinute ?? Infinity) <= countedSingly_max;
}

/** The limit that a request can never meet, whatever was taken before. */
export function hopelessLimit({ tokens_min, limits }: RateRequest): RateLimitName | null {
  if ((limits.requestsPerMinute ?? Infinity) < 1) return "requests";
  return (limits.tokensPerMinute ?? Infinity) < tokens_min ? "tokens" : null;
}

/** What a store found, as numbers. */
export interface RateCount {
  taken: boolean;
  /** Counted now, this request included where it was taken. */
  requests: number;
  tokens: number;
  /** Until the last entry ends. */
  reset_ms: number;
  /** Of a refusal: until there is room; 0 for a limit that has room. */
  requestsRetry_ms: number;
  tokensRetry_ms: number;
}

export function readingsOf({ requests, tokens, reset_ms }: RateCount, limits: RateLimits): RateReadings {
  const reading = (limit: number | null, used: number): RateReading | null =>
    limit === null ? null : { limit, remaining: Math.max(0, limit - used), reset_ms: used > 0 ? reset_ms : 0 };
  return { requests: reading(limits.requestsPerMinute, requests), tokens: reading(limits.tokensPerMinute, tokens) };
}

export function refusalOf(count: RateCount, limits: RateLimits): RateRefused {
  const { requestsRetry_ms, tokensRetry_ms } = count;
  const retry_ms = Math.max(requestsRetry_ms, tokensRetry_ms);
  return {
    answer: "refused",
    limit: tokensRetry_ms > requestsRetry_ms ? "tokens" : "requests",
    // The last of the entries that share a second may have a moment more.
    retry_ms: Math.min(minute_ms, Math.max(1, retry_ms)),
    readings: readingsOf(count, limits),
  };
}
