/** The requests that this process has in flight at each route, and the sessions that are at home there. */
import type { Route } from "./catalog.ts";
import { type Burden, choose, engineIn, foremost, identityOf } from "./choose.ts";

export interface Visit {
  /** The key of the session (affinity.ts). Called only where there is a choice. */
  key(): number | null;
  /** The load that the request puts on its engine: its input, and a likely answer. */
  tokens: number;
}

export interface Pool {
  /** Null if there is none. */
  choose(routes: readonly Route[], visit: Visit, draw: () => number): Route | null;
  /** A request is sent. `hasPeers`: whether there was a choice, so that its session gets a home. */
  begun(route: Route, visit: Visit, hasPeers: boolean, now_ms: number): void;
  /** Called once, when the request is over. */
  ended(route: Route, visit: Visit): void;
  of(route: Route): Readonly<Burden>;
  /** Forgets all other engines that are idle. */
  retain(engines: ReadonlySet<string>): void;
}

/** After this time, an engine has evicted the session's prefix from its cache. */
const home_ms = 15 * 60_000;
const homes_max = 20_000;

interface Home {
  place: Burden;
  seen_ms: number;
}

export function pool(): Pool {
  const places = new Map<string, Burden>();
  const known = new WeakMap<Route, Burden>();
  // The session that was seen longest ago is first.
  const homes = new Map<number, Home>();

  /** A reload makes new routes of the same engines. */
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
