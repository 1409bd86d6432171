/**
 * Which route goes first. Pure: `draw` is a number from 0 to 1, derived from the request's affinity key where it has one
 * (so that its prefix cache is met again), else random. Lower priority is better; within one, weight decides.
 */
import type { Route } from "./catalog.ts";

export function choose(routes: readonly Route[], draw: number): Route {
  const best = Math.min(...routes.map((route) => route.priority));
  const candidates = routes.filter((route) => route.priority === best && route.weight > 0);
  const pool = candidates.length > 0 ? candidates : routes;
  let left = draw * pool.reduce((sum, route) => sum + route.weight, 0);
  for (const route of pool) {
    left -= route.weight;
    if (left < 0) return route;
  }
  const last = pool.at(-1);
  if (!last) throw new Error("a model without routes cannot be in the catalog");
  return last;
}
