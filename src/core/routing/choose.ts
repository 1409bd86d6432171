/**
 * Chooses a route for a request: docs/routing.md. A lower priority number is better. Within one priority, a session
 * stays at its home route, a new session goes to the route that its key ranks first, and a request without a session
 * goes to the less loaded of two routes drawn at random. Pure.
 *
 * Also counts the requests that this process has in flight at each route, and the sessions whose home the route is.
 */
import { endpointOf, type Upstream } from "../upstream/target.ts";
import type { Route } from "./catalog.ts";

export interface Burden {
  /** The tokens of the requests in flight at the route. */
  tokens: number;
  requests: number;
  /** The number of sessions of the last minutes whose home the route is. */
  sessions: number;
}

interface Seeking {
  /** The key of the session, which decides the route of a new session; null if there is none. */
  key: number | null;
  /** Whether the session's last request went to this route. */
  isHome(route: Route): boolean;
  tokens: number;
}

/**
 * A route may have this many times its share of the load. Beyond that, even its own sessions are sent to other routes.
 */
export const bound = 1.25;

/** A deviation of a route's load from its share by up to this many standard deviations counts as chance. */
const deviations = 3;

/** Chooses one of the routes; null if there are none. `draw` returns numbers from 0 to 1. */
export function choose(
  routes: readonly Route[],
  seeking: Seeking,
  burdenOf: (route: Route) => Burden,
  draw: () => number,
): Route | null {
  if (routes.length < 2) return routes[0] ?? null;
  if (seeking.key === null) return lessBusyOfTwo(routes, burdenOf, draw);
  const home = routes.find(seeking.isHome) ?? null;
  const room = roomIn(routes, seeking.tokens, home ? 0 : 1, burdenOf);
  if (home) {
    if (room.isFree(home)) return home;
    const others = routes.filter((route) => route !== home && room.isFree(route) && room.hasPlace(route));
    return lessBusyOfTwo(others, burdenOf, draw) ?? home;
  }
  const { key } = seeking;
  const near = routes.map((route) => ({ route, at: distance(key, route) })).sort((one, other) => one.at - other.at);
  const open = near.filter(({ route }) => room.hasPlace(route));
  const first = open.find(({ route }) => room.isFree(route)) ?? open[0];
  return first?.route ?? lessBusyOfTwo(routes, burdenOf, draw);
}

/** The routes of the best priority, without those of weight 0 unless all have weight 0. */
export function foremost(routes: readonly Route[]): readonly Route[] {
  if (routes.length < 2) return routes;
  const open = routes.filter((route) => route.weight > 0);
  const pool = open.length > 0 ? open : routes;
  const best = Math.min(...pool.map((route) => route.priority));
  return pool.filter((route) => route.priority === best);
}

/**
 * The routes whose context holds this many tokens; if there are none, those with the largest context: the engine then
 * decides.
 */
export function fitting(routes: readonly Route[], tokens: number, contextOf: (route: Route) => number): Route[] {
  const fits = routes.filter((route) => contextOf(route) >= tokens);
  if (fits.length > 0) return fits;
  const largest = Math.max(...routes.map(contextOf));
  return routes.filter((route) => contextOf(route) === largest);
}

/** The identity of a route, which stays the same over reloads and changes of addresses: its engine and the model. */
export function identityOf({ upstream, model }: Route): string {
  return `${engineOf(upstream)}\n${model}`;
}

/** The identity of an engine: the upstream's name, with its URL or one of its addresses. */
export function engineOf(upstream: Pick<Upstream, "name" | "url" | "address">): string {
  return `${upstream.name}\n${endpointOf(upstream)}`;
}

/** The engine part of an engine's or a route's identity. */
export function engineIn(identity: string): string {
  return identity.split("\n", 2).join("\n");
}

/** The endpoint part of an engine's or a route's identity. */
export function endpointIn(identity: string): string | undefined {
  return identity.split("\n", 2)[1];
}

/** Whether two objects stand for the same route: after a change of addresses, the remaining routes get new objects. */
export function isSame(one: Route, other: Route): boolean {
  return one === other || (one.upstream.address !== undefined && identityOf(one) === identityOf(other));
}

function lessBusyOfTwo(routes: readonly Route[], burdenOf: (route: Route) => Burden, draw: () => number): Route | null {
  const one = drawn(routes, draw());
  const other = drawn(
    routes.filter((route) => route !== one),
    draw(),
  );
  if (!one || !other) return one;
  const busy = (route: Route) => burdenOf(route).tokens / (route.weight || 1);
  return busy(other) < busy(one) ? other : one;
}

function drawn(routes: readonly Route[], draw: number): Route | null {
  let left = draw * routes.reduce((sum, route) => sum + route.weight, 0);
  for (const route of routes) {
    left -= route.weight;
    if (left < 0) return route;
  }
  return routes.at(-1) ?? null;
}

/**
 * Makes the functions that tell whether one of these routes has room. `sessionsNew`: 1 if the request begins a session,
 * 0 if its session is counted already.
 */
function roomIn(routes: readonly Route[], tokens: number, sessionsNew: number, burdenOf: (route: Route) => Burden) {
  const sum = (value: (route: Route) => number) => routes.reduce((total, route) => total + value(route), 0);
  const weights = sum(({ weight }) => weight);
  const inFlight = sum((route) => burdenOf(route).tokens) + tokens;
  const usual = inFlight / (sum((route) => burdenOf(route).requests) + 1);
  const sessions = sum((route) => burdenOf(route).sessions) + sessionsNew;
  const shareOf = ({ weight }: Route) => (weights === 0 ? 1 / routes.length : weight / weights);
  return {
    /**
     * Whether the route's load is within `bound` times its share. Deviations by chance are allowed: otherwise no
     * session would stay at home.
     */
    isFree(route: Route): boolean {
      const busy = burdenOf(route).tokens;
      const share = shareOf(route);
      const mean = inFlight * share;
      return busy === 0 || busy + tokens <= bound * mean + deviations * Math.sqrt(mean * usual * (1 - share));
    },
    /**
     * Whether the route with one more session is within `bound` times its share of sessions. This is true for at least
     * one route.
     */
    hasPlace: (route: Route) => burdenOf(route).sessions < Math.ceil(bound * sessions * shareOf(route)),
  };
}

/**
 * The rank of a route for a key, by weighted rendezvous hashing: each key has its own order of routes, so that when a
 * route is lost, only its sessions move, spread evenly over the others.
 */
function distance(key: number, route: Route): number {
  const hash = Number(BigInt.asUintN(32, BigInt(Bun.hash(identityOf(route), key))));
  return -Math.log((hash + 1) / (2 ** 32 + 1)) / (route.weight || 1e-9);
}

export interface Visit {
  /** The key of the session (affinity.ts). Called only if there is a choice of routes. */
  key(): number | null;
  /** The load of the request in tokens: its input, and a likely answer. */
  tokens: number;
}

export interface Pool {
  choose(routes: readonly Route[], visit: Visit, draw: () => number): Route | null;
  /**
   * Counts a request that is sent. `hasPeers`: there were several routes to choose from, so its session gets a home.
   */
  begun(route: Route, visit: Visit, hasPeers: boolean, now_ms: number): void;
  /** Counts the end of the request. Called once. */
  ended(route: Route, visit: Visit): void;
  of(route: Route): Readonly<Burden>;
  /** Forgets all idle engines but these. */
  retain(engines: ReadonlySet<string>): void;
}

/** How long a session without requests keeps its home. By then, the engine has evicted its prefix from the cache. */
const home_ms = 15 * 60_000;
const homes_max = 20_000;

interface Home {
  place: Burden;
  seen_ms: number;
}

export function pool(): Pool {
  const places = new Map<string, Burden>();
  const known = new WeakMap<Route, Burden>();
  // The homes of sessions. The session that has had no request for longest is first.
  const homes = new Map<number, Home>();

  /** The load of a route. It is found by the route's identity, because a reload makes new route objects. */
  function placeOf(route: Route): Burden {
    let place = known.get(route);
    if (place) return place;
    const identity = identityOf(route);
    place = places.get(identity) ?? { tokens: 0, requests: 0, sessions: 0 };
    places.set(identity, place);
    known.set(route, place);
    return place;
  }

  function settle(key: number, place: Burden, now_ms: number): void {
    leave(key);
    homes.set(key, { place, seen_ms: now_ms });
    place.sessions += 1;
    for (const [oldest, { seen_ms }] of homes) {
      if (homes.size <= homes_max && seen_ms > now_ms - home_ms) break;
      leave(oldest);
    }
  }

  function leave(key: number): void {
    const home = homes.get(key);
    if (!home) return;
    home.place.sessions -= 1;
    homes.delete(key);
  }

  return {
    choose(routes, visit, draw) {
      const candidates = foremost(routes);
      if (candidates.length < 2) return candidates[0] ?? null;
      const key = visit.key();
      const home = key === null ? undefined : homes.get(key)?.place;
      const isHome = (route: Route) => home !== undefined && placeOf(route) === home;
      return choose(candidates, { key, isHome, tokens: visit.tokens }, placeOf, draw);
    },
    begun(route, visit, hasPeers, now_ms) {
      const place = placeOf(route);
      place.tokens += visit.tokens;
      place.requests += 1;
      const key = hasPeers ? visit.key() : null;
      if (key !== null) settle(key, place, now_ms);
    },
    ended(route, visit) {
      const place = placeOf(route);
      place.tokens -= visit.tokens;
      place.requests -= 1;
    },
    of: placeOf,
    retain(engines) {
      for (const [identity, { requests }] of places)
        if (requests === 0 && !engines.has(engineIn(identity))) places.delete(identity);
    },
  };
}
