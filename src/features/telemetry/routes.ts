/** The state of each route as this process knows it, for operators. */

import type { Catalog, Route } from "../../core/routing/catalog.ts";
import { identityOf, type Pool } from "../../core/routing/choose.ts";
import type { Health } from "../../core/routing/health.ts";
import { type Queues, queueOf } from "../../core/routing/queues.ts";
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

export type RouteLoad = Pick<RouteView, "model" | "upstream" | "replica" | "requests" | "tokens" | "waiting">;

/** The load of each route. What several models share, at an engine or in a queue, is counted at the first of them. */
export function loadsOf(catalog: Catalog, { replicas, pool, queues }: Omit<Known, "drained" | "health">): RouteLoad[] {
  const isNew = firsts();
  const load = (model: string, route: Route): RouteLoad => {
    const { name: upstream, address: replica } = route.upstream;
    const { requests, tokens } = isNew("route", identityOf(route)) ? pool.of(route) : { requests: 0, tokens: 0 };
    const waiting = isNew("queue", queueOf(route)) ? queues.lengthOf(route) : 0;
    return { model, upstream, ...(replica ? { replica } : {}), requests, tokens, waiting };
  };
  return [...catalog.models.values()].flatMap((model) => replicas.allOf(model).map((route) => load(model.id, route)));
}

/** Returns a function that is true the first time that it is asked for an identity of this kind. */
export function firsts(): (kind: "queue" | "route", identity: string) => boolean {
  const counted = new Set<string>();
  return (kind, identity) => counted.size < counted.add(`${kind}\n${identity}`).size;
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
