/**
 * Which route goes first. Pure: `draw` is a number from 0 to 1, derived from the request's affinity key where it has one
 * (so that its prefix cache is met again), else random. Lower priority is better; within one, weight decides.
 */
import type { Route } from "./catalog.ts";

export function choose(routes: readonly Route[], draw: number): Route | null {
  const open = routes.filter((route) => route.weight > 0);
  const pool = open.length > 0 ? open : routes;
  const best = Math.min(...pool.map((route) => route.priority));
  const candidates = pool.filter((route) => route.priority === best);
  let left = draw * candidates.reduce((sum, route) => sum + route.weight, 0);
  for (const route of candidates) {
    left -= route.weight;
    if (left < 0) return route;
  }
  return candidates.at(-1) ?? null;
}

/** A stable number from 0 to 1. */
export function affinity(key: string): number {
  return Number(BigInt.asUintN(32, BigInt(Bun.hash(key)))) / 2 ** 32;
}

/** Those whose context holds so many tokens; where none does, the largest: the engine has the last word. */
export function fitting(routes: readonly Route[], tokens: number, contextOf: (route: Route) => number): Route[] {
  const fits = routes.filter((route) => contextOf(route) >= tokens);
  if (fits.length > 0) return fits;
  const largest = Math.max(...routes.map(contextOf));
  return routes.filter((route) => contextOf(route) === largest);
}
