/** What this process knows of routes. Nothing is told between nodes: each finds out by itself, and none needs it to be safe. */
import type { AttemptEnd } from "../upstream/attempt.ts";
import { admits, type Breaker, begun, closed, ended } from "./breaker.ts";
import type { Route } from "./catalog.ts";

export interface Health {
  /** Those that may be asked; all, where none may: never are all routes of a model kept back. */
  usable(routes: readonly Route[], now_ms: number): readonly Route[];
  begun(route: Route, now_ms: number): void;
  /** An attempt that began at `begun_ms` is over, or has begun to answer. */
  ended(route: Route, end: AttemptEnd, begun_ms: number, now_ms: number): void;
}

export function health(): Health {
  // A breaker that is closed and rests not is forgotten, so the map holds no more than what is ill.
  const ill = new Map<string, Breaker>();
  const of = (route: Route) => ill.get(keyOf(route)) ?? closed;
  const set = (route: Route, breaker: Breaker, now_ms: number) => {
    const isWell = breaker.state === "closed" && breaker.failures === 0 && breaker.restUntil_ms <= now_ms;
    if (!isWell) ill.set(keyOf(route), breaker);
    else if (ill.size > 0) ill.delete(keyOf(route));
  };
  return {
    usable(routes, now_ms) {
      if (ill.size === 0) return routes;
      const well = routes.filter((route) => admits(of(route), now_ms));
      return well.length > 0 ? well : routes;
    },
    begun(route, now_ms) {
      if (ill.size > 0) set(route, begun(of(route), now_ms), now_ms);
    },
    ended: (route, end, begun_ms, now_ms) => set(route, ended(of(route), end, begun_ms, now_ms), now_ms),
  };
}

/** A reload makes new routes of the same engines. */
function keyOf({ upstream, model }: Route): string {
  return `${upstream.name}\n${upstream.url}\n${model}`;
}
