/**
 * The circuit breaker of a route: decides from the results of attempts whether it may be asked. It opens after several
 * failures in a row, or when a share of the latest attempts failed. After a probation it lets one request at a time
 * through as a probe, which shows whether the engine has recovered. Pure: a state and an event give the next state.
 */
import type { AttemptKind } from "../upstream/attempt.ts";

export interface Breaker {
  state: "closed" | "open" | "half-open";
  /** Failures in a row, while it is closed. */
  failures: number;
  /** The ends of the latest attempts, while it is closed: a bit for each, the last one lowest, 1 for a failure. */
  history: number;
  /** The number of attempts in `history`. */
  seen: number;
  /** How long the breaker stays open the next time. */
  probation_ms: number;
  /** When it opened or let its probe through. The ends of attempts that began earlier are ignored. */
  since_ms: number;
  /** Until when no request is let through: set when it opens, and by a full engine that names a time. */
  restUntil_ms: number;
}

/** Failures in a row that open a breaker. */
export const failures_max = 3;
/** A breaker also opens when half of the latest attempts failed: `history_max` of them, or at least `history_min`. */
export const history_max = 20;
export const history_min = 10;
export const probation_ms_min = 1_000;
export const probation_ms_max = 15_000;
/** A full engine is left alone for this long at most, whatever time it names. */
export const rest_ms_max = 60_000;

export const closed: Breaker = {
  state: "closed",
  failures: 0,
  history: 0,
  seen: 0,
  probation_ms: probation_ms_min,
  since_ms: 0,
  restUntil_ms: 0,
};

/** How an attempt ended. `slow`: the engine answered far later than its peers. */
export type EndKind = AttemptKind | "slow";

export interface End {
  kind: EndKind;
  retryAfter_ms?: number;
}

/** The engine's health by each end of an attempt; `nothing`: the end tells nothing about it. */
const says: Record<EndKind, "ill" | "alive" | "nothing"> = {
  answered: "alive",
  empty: "ill",
  abandoned: "nothing",
  unreachable: "ill",
  stale: "nothing",
  broken: "ill",
  timeout: "ill",
  busy: "alive",
  failed: "ill",
  refused: "ill",
  rejected: "alive",
  too_long: "alive",
  malformed: "ill",
  slow: "ill",
};

export function admits(breaker: Breaker, now_ms: number): boolean {
  return breaker.state !== "half-open" && now_ms >= breaker.restUntil_ms;
}

/** The state after a request was sent. If the breaker was open, the request is its probe. */
export function begun(breaker: Breaker, now_ms: number): Breaker {
  return breaker.state === "open" && now_ms >= breaker.restUntil_ms
    ? { ...breaker, state: "half-open", since_ms: now_ms }
    : breaker;
}

/** The state after an attempt that began at `begun_ms` has ended. */
export function ended(breaker: Breaker, end: End, begun_ms: number, now_ms: number): Breaker {
  if (breaker.state === "open" && begun_ms <= breaker.since_ms) return breaker;
  if (breaker.state === "half-open" && begun_ms < breaker.since_ms) return breaker;
  switch (says[end.kind]) {
    case "nothing":
      // A probe that was abandoned proves nothing: the next request becomes the probe.
      return breaker.state === "half-open" ? { ...breaker, state: "open" } : breaker;
    case "alive": {
      const rest_ms = end.kind === "busy" ? Math.min(rest_ms_max, end.retryAfter_ms ?? 0) : 0;
      const kept = breaker.state === "closed" ? withLast(breaker, 0) : closed;
      return { ...kept, failures: 0, restUntil_ms: now_ms + rest_ms };
    }
    case "ill": {
      const counted = withLast(breaker, 1);
      if (breaker.state === "closed" && counted.failures < failures_max && !isOftenIll(counted)) return counted;
      return {
        ...closed,
        state: "open",
        probation_ms: Math.min(probation_ms_max, breaker.probation_ms * 2),
        since_ms: now_ms,
        restUntil_ms: now_ms + breaker.probation_ms,
      };
    }
  }
}

/**
 * The state after a health check has succeeded again. An open breaker lets its probe through at once; the next
 * probation does not become shorter.
 */
export function checked(breaker: Breaker, now_ms: number): Breaker {
  if (breaker.state !== "open") return breaker;
  return { ...breaker, restUntil_ms: Math.min(breaker.restUntil_ms, now_ms) };
}

/** Whether the state is that of a route without failures, so that it need not be kept. */
export function isWell({ state, history, restUntil_ms }: Breaker, now_ms: number): boolean {
  return state === "closed" && history === 0 && restUntil_ms <= now_ms;
}

function withLast(breaker: Breaker, failed: 0 | 1): Breaker {
  const history = ((breaker.history << 1) | failed) & (2 ** history_max - 1);
  return { ...breaker, history, seen: Math.min(history_max, breaker.seen + 1), failures: breaker.failures + failed };
}

function isOftenIll({ history, seen }: Breaker): boolean {
  return seen >= history_min && 2 * ones(history) >= seen;
}

function ones(bits: number): number {
  let count = 0;
  for (let left = bits; left !== 0; left &= left - 1) count += 1;
  return count;
}
