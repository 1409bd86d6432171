/** What operators see of routes: how each is now, as this process knows it. */
import type { Catalog, Route } from "./catalog.ts";
import type { Health, RouteState } from "./health.ts";
import type { Pool } from "./pool.ts";
import type { Queues } from "./queues.ts";
import type { Replicas } from "./replicas.ts";

export interface RouteView {
  /** Public model id. */
  model: string;
  /** Its name in the configuration; replicas share it. */
  upstream: string;
  /** Its address, where its name has several. */
  replica?: string;
  state: RouteState;
  /** In flight. */
  requests: number;
  tokens: number;
  /** For room at its engine; one may wait for several. */
  waiting: number;
}

interface Known {
  replicas: Pick<Replicas, "allOf">;
  health: Health;
  pool: Pool;
  queues: Queues;
}

export function routesOf(catalog: Catalog, { replicas, health, pool, queues }: Known, now_ms: number): RouteView[] {
  const view = (model: string, route: Route): RouteView => {
    const { requests, tokens } = pool.of(route);
    const state = health.stateOf(route, now_ms);
    const { name: upstream, address: replica } = route.upstream;
    const waiting = queues.lengthOf(route);
    return { model, upstream, ...(replica ? { replica } : {}), state, requests, tokens, waiting };
  };
  return [...catalog.models.values()].flatMap((model) => replicas.allOf(model).map((route) => view(model.id, route)));
}

/** Models of which no route is well: all of theirs are asked, since none may be kept back. */
export function modelsWithoutRoute(routes: readonly RouteView[]): string[] {
  const well = new Set(
    routes.filter(({ state }) => state === "closed" || state === "crowded").map(({ model }) => model),
  );
  return [...new Set(routes.map(({ model }) => model))].filter((model) => !well.has(model));
}
