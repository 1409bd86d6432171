/** The engines as this process reports them to the fleet: one entry for each, over all of its routes. */
import type { Catalog } from "../../core/routing/catalog.ts";
import { engineOf, identityOf } from "../../core/routing/choose.ts";
import { queueOf } from "../../core/routing/queues.ts";
import { type EngineSeen, limitSum } from "../../core/store/fleet.ts";
import { firsts, type Known, stateOf } from "./routes.ts";

/** A limit of requests at an engine that the whole fleet shares, and how many of its slots this process has now. */
export interface SharedLimit {
  /**
   * The upstream's name. Each replica of the upstream has a `SharedLimit`, and so has a route with a limit of its own.
   */
  upstream: string;
  held: number;
  /** Whether Redis, through which the limit is shared, does not answer. */
  isApart: boolean;
}

export function sharedLimits(
  catalog: Catalog,
  { replicas, queues }: Pick<Known, "replicas" | "queues">,
): SharedLimit[] {
  const limits = new Map<string, SharedLimit>();
  for (const model of catalog.models.values())
    for (const route of replicas.allOf(model)) {
      const shared = queues.sharedOf(route);
      if (shared) limits.set(queueOf(route), { upstream: route.upstream.name, ...shared });
    }
  return [...limits.values()];
}

/** The entries of all engines. Several public models may share a route or a queue, whose requests are counted once. */
export function enginesSeen(catalog: Catalog, known: Known, now_ms: number): EngineSeen[] {
  const engines = new Map<string, ReturnType<typeof newEngine>>();
  const isNew = firsts();
  for (const model of catalog.models.values())
    for (const route of known.replicas.allOf(model)) {
      const { name: upstream, address: replica = null } = route.upstream;
      const key = engineOf(route.upstream);
      const engine = engines.get(key) ?? newEngine(upstream, replica);
      engines.set(key, engine);
      if (isNew("queue", queueOf(route))) {
        engine.waiting += known.queues.lengthOf(route);
        engine.requests_max = limitSum(engine.requests_max, known.queues.mostOf(route));
      }
      if (!isNew("route", identityOf(route))) continue;
      const state = stateOf(route, known, now_ms);
      const { requests, tokens } = known.pool.of(route);
      engine.states[state] = (engine.states[state] ?? 0) + 1;
      engine.requests += requests;
      engine.tokens += tokens;
    }
  return [...engines.values()];
}

function newEngine(upstream: string, replica: string | null): EngineSeen & { requests_max: number | null } {
  return { upstream, replica, states: {}, requests: 0, tokens: 0, waiting: 0, requests_max: 0 };
}
