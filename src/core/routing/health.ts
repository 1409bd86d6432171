/**
 * The circuit breaker of a route: decides from the results of attempts whether the route may be tried. It opens after
 * several failures in a row, or when a share of the latest attempts failed. After a probation it lets one request at a
 * time through as a probe, which shows whether the engine has recovered. Pure: a state and an event give the next
 * state.
 *
 * Also keeps the health of all routes, as this process alone knows it: nodes do not exchange it.
 *
 * Also compares how soon the routes of a model begin to answer. Pure.
 */
import type { AttemptKind } from "../upstream/attempt.ts";
import { endpointOf } from "../upstream/target.ts";
import type { Route } from "./catalog.ts";
import { endpointIn, engineIn, identityOf, isSame } from "./choose.ts";

export interface Breaker {
  state: "closed" | "open" | "half-open";
  /** The number of failures in a row, while the breaker is closed. */
  failures: number;
  /**
   * The results of the latest attempts, while the breaker is closed: one bit for each attempt, the latest in the lowest
   * bit, 1 for a failure.
   */
  history: number;
  /** How many attempts `history` has. */
  seen: number;
  /** How long the breaker stays open the next time. */
  probation_ms: number;
  /**
   * When the breaker last opened, or last let a probe through. The results of attempts that began earlier are ignored.
   */
  since_ms: number;
  /**
   * No request is let through before this time. It is set when the breaker opens, and when a full engine names a time
   * to wait.
   */
  restUntil_ms: number;
}

/** The number of failures in a row that opens a breaker. */
const failures_max = 3;
/**
 * A breaker also opens when half of the latest attempts failed. The last `history_max` attempts count, and there must
 * be at least `history_min`.
 */
const history_max = 20;
const history_min = 10;
export const probation_ms_min = 1_000;
export const probation_ms_max = 15_000;
/** A full engine gets no requests for this long at most, whatever time it names. */
const rest_ms_max = 60_000;

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

interface End {
  kind: EndKind;
  retryAfter_ms?: number;
}

/**
 * The meaning of each result of an attempt for the engine's health. `nothing`: the result says nothing about the
 * health.
 */
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
function checked(breaker: Breaker, now_ms: number): Breaker {
  if (breaker.state !== "open") return breaker;
  return { ...breaker, restUntil_ms: Math.min(breaker.restUntil_ms, now_ms) };
}

/** Whether the state is that of a route without failures, which need not be kept. */
function isWell({ state, history, restUntil_ms }: Breaker, now_ms: number): boolean {
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

export interface Health {
  /** The routes that may be tried; all of them if none may, so that a model never loses every route. */
  usable(routes: readonly Route[], now_ms: number): readonly Route[];
  begun(route: Route, now_ms: number): void;
  /** Records the end of an attempt that began at `begun_ms`. */
  ended(route: Route, end: End, begun_ms: number, now_ms: number): void;
  /**
   * Records how long a route took to begin its answer, beyond what the request's size explains (`taken_ms`). `routes`:
   * all routes of the model.
   */
  shown(route: Route, routes: readonly Route[], taken_ms: number, begun_ms: number, now_ms: number): void;
  /** Records that the result of this endpoint's active check has changed. */
  checked(endpoint: string, isUp: boolean, now_ms: number): void;
  /** Records whether the engine at this endpoint reports that it is busy. */
  crowded(endpoint: string, isCrowded: boolean): void;
  stateOf(route: Route, now_ms: number): RouteState;
  /** Forgets all engines but these. */
  retain(engines: ReadonlySet<string>): void;
}

/**
 * The state of a route. `closed`: the route may be tried. `crowded`: the route is tried if no other route is less busy.
 * `open`, `half-open`: the state of its breaker. `resting`: the engine is full, until the time that it named. `down`:
 * its health check fails. `unresolved`: no address of its name is known.
 */
export type RouteState = Breaker["state"] | "crowded" | "resting" | "down" | "unresolved";

export function health(): Health {
  // Only breakers with failures are kept.
  const ill = new Map<string, Breaker>();
  const paces = new Map<string, RoutePace>();
  const down = new Set<string>();
  const crowded = new Set<string>();
  const of = (route: Route) => (ill.size === 0 ? closed : (ill.get(identityOf(route)) ?? closed));
  const set = (route: Route, breaker: Breaker, now_ms: number) => {
    if (!isWell(breaker, now_ms)) ill.set(identityOf(route), breaker);
    else if (ill.size > 0) ill.delete(identityOf(route));
  };
  const isUsable = (route: Route, now_ms: number) => !down.has(endpointOf(route.upstream)) && admits(of(route), now_ms);
  const end = (route: Route, how: End, begun_ms: number, now_ms: number) => {
    // If all routes are without failures, an answer changes no state.
    if (ill.size > 0 || how.kind !== "answered") set(route, ended(of(route), how, begun_ms, now_ms), now_ms);
  };

  return {
    usable(routes, now_ms) {
      if (ill.size === 0 && down.size === 0 && crowded.size === 0) return routes;
      const well = routes.filter((route) => isUsable(route, now_ms));
      if (well.length === 0) return routes;
      const calm = well.filter((route) => !crowded.has(endpointOf(route.upstream)));
      return calm.length > 0 ? calm : well;
    },
    begun(route, now_ms) {
      if (ill.size > 0) set(route, begun(of(route), now_ms), now_ms);
    },
    ended: end,
    shown(route, routes, taken_ms, begun_ms, now_ms) {
      if (routes.length < 2) return end(route, { kind: "answered" }, begun_ms, now_ms);
      const isPeer = (other: Route) => other.priority === route.priority && !isSame(other, route);
      const peers = routes.filter((other) => isPeer(other) && isUsable(other, now_ms));
      const known = peers.flatMap((other) => paces.get(identityOf(other)) ?? []);
      const isSlow = isFarBeyond(taken_ms, known);
      // A slow answer must not raise the mean by which other routes are measured.
      if (!isSlow) paces.set(identityOf(route), paced(paces.get(identityOf(route)), taken_ms));
      end(route, { kind: isSlow ? "slow" : "answered" }, begun_ms, now_ms);
    },
    checked(endpoint, isUp, now_ms) {
      if (!isUp) return void down.add(endpoint);
      down.delete(endpoint);
      for (const [identity, breaker] of ill)
        if (endpointIn(identity) === endpoint) ill.set(identity, checked(breaker, now_ms));
    },
    crowded: (endpoint, isCrowded) => void (isCrowded ? crowded.add(endpoint) : crowded.delete(endpoint)),
    stateOf(route, now_ms) {
      const endpoint = endpointOf(route.upstream);
      if (route.upstream.address === null) return "unresolved";
      if (down.has(endpoint)) return "down";
      const { state, restUntil_ms } = of(route);
      if (state !== "closed") return state;
      if (restUntil_ms > now_ms) return "resting";
      return crowded.has(endpoint) ? "crowded" : "closed";
    },
    retain(engines) {
      for (const known of [ill, paces])
        for (const identity of known.keys()) if (!engines.has(engineIn(identity))) known.delete(identity);
    },
  };
}

interface RoutePace {
  /** A moving mean of the milliseconds until the first part, beyond what the request's size explains. */
  mean_ms: number;
  count: number;
}

/** The weight of the latest measurement in a mean. */
const pace_weight = 0.1;
/** The number of measurements from which a mean is used. */
const count_min = 10;
/** A route is slow if it takes `slow_factor` times as long as its slowest peer, and `slow_ms_min` more. */
const slow_factor = 4;
const slow_ms_min = 2_000;

function paced(pace: RoutePace | undefined, taken_ms: number): RoutePace {
  if (!pace) return { mean_ms: taken_ms, count: 1 };
  // The first measurements all have the same weight.
  const part = Math.max(pace_weight, 1 / (pace.count + 1));
  return { mean_ms: pace.mean_ms + part * (taken_ms - pace.mean_ms), count: pace.count + 1 };
}

/** Whether a time is far beyond the peers' means. False if the peers have not enough measurements. */
function isFarBeyond(taken_ms: number, peers: readonly RoutePace[]): boolean {
  const known = peers.filter(({ count }) => count >= count_min);
  if (known.length === 0) return false;
  const slowest_ms = Math.max(...known.map(({ mean_ms }) => mean_ms));
  return taken_ms > slow_ms_min + slow_factor * slowest_ms;
}
