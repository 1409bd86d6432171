/** The requests that this process has in flight at each route, and the sessions whose home it is. */
import type { Route } from "./catalog.ts";
import { type Burden, choose, engineIn, foremost, identityOf } from "./choose.ts";

export interface Visit {
  /** The key of the session (affinity.ts). Called only if there is a choice of routes. */
  key(): number | null;
  /** The load of the request in tokens: its input, and a likely answer. */
  tokens: number;
}

export interface Pool {
  /** One of the routes; null if there are none. */
  choose(routes: readonly Route[], visit: Visit, draw: () => number): Route | null;
  /** Counts a request that is sent. `hasPeers`: there was a choice, so that its session gets a home. */
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
  // The homes of sessions. The session without requests for longest is first.
  const homes = new Map<number, Home>();

  /** The entry of a route, found by identity because a reload makes new route objects. */
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
