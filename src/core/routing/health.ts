/** The health of routes, as this process alone knows it: nodes don't tell each other. */
import { endpointOf } from "../upstream/target.ts";
import { admits, type Breaker, begun, checked, closed, type End, ended, isWell } from "./breaker.ts";
import type { Route } from "./catalog.ts";
import { endpointIn, engineIn, identityOf, isSame } from "./choose.ts";
import { isFarBeyond, paced, type RoutePace } from "./pace.ts";

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
 * `closed`: may be tried. `crowded`: tried if no other is less busy. `open`, `half-open`: the state of its breaker.
 * `resting`: full, until the time that it named. `down`: its check fails. `unresolved`: no address of its name is
 * known.
 */
export type RouteState = Breaker["state"] | "crowded" | "resting" | "down" | "unresolved";

export function health(): Health {
  // Only breakers with failures are kept.
  const ill = new Map<string, Breaker>();
  const paces = new Map<string, RoutePace>();
  const down = new Set<string>();
  const crowded = new Set<string>();
  const of = (route: Route) => ill.get(identityOf(route)) ?? closed;
  const set = (route: Route, breaker: Breaker, now_ms: number) => {
    if (!isWell(breaker, now_ms)) ill.set(identityOf(route), breaker);
    else if (ill.size > 0) ill.delete(identityOf(route));
  };
  const isUsable = (route: Route, now_ms: number) => !down.has(endpointOf(route.upstream)) && admits(of(route), now_ms);
  const end = (route: Route, how: End, begun_ms: number, now_ms: number) =>
    set(route, ended(of(route), how, begun_ms, now_ms), now_ms);

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
      const peers = routes.filter((other) => !isSame(other, route) && isUsable(other, now_ms));
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
