/** The state of each route as this process knows it, for operators. */

import type { Catalog, Route } from "../../core/routing/catalog.ts";
import type { Pool } from "../../core/routing/choose.ts";
import type { Health } from "../../core/routing/health.ts";
import type { Queues } from "../../core/routing/queues.ts";
import type { Drained, Replicas } from "../../core/routing/replicas.ts";
import type { RouteView } from "../../core/routing/view.ts";

/** The parts of this process that know the state of its routes. */
export interface Known {
  replicas: Pick<Replicas, "allOf">;
  drained: Drained;
  health: Health;
  pool: Pool;
  queues: Queues;
}

export function stateOf(route: Route, { drained, health }: Known, now_ms: number): RouteView["state"] {
  return drained.has(route.upstream) ? "drained" : health.stateOf(route, now_ms);
}

export function routesOf(catalog: Catalog, known: Known, now_ms: number): RouteView[] {
  const { replicas, pool, queues } = known;
  const view = (model: string, route: Route): RouteView => {
    const { requests, tokens } = pool.of(route);
    const state = stateOf(route, known, now_ms);
    const { name: upstream, address: replica } = route.upstream;
    const waiting = queues.lengthOf(route);
    return { model, upstream, ...(replica ? { replica } : {}), state, requests, tokens, waiting };
  };
  return [...catalog.models.values()].flatMap((model) => replicas.allOf(model).map((route) => view(model.id, route)));
}

/**
 * The models without a healthy route. All routes of such a model are tried, because a model must not lose every route.
 */
export function modelsWithoutRoute(routes: readonly RouteView[]): string[] {
  const well = new Set(
    routes.filter(({ state }) => state === "closed" || state === "crowded").map(({ model }) => model),
  );
  return [...new Set(routes.map(({ model }) => model))].filter((model) => !well.has(model));
}
