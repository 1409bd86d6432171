/** The routes of a model as they are now: one for each address of a name that is resolved anew. */
import type { Upstream } from "../upstream/target.ts";
import type { CatalogModel, Route } from "./catalog.ts";
import { engineOf } from "./choose.ts";

export interface Replicas {
  /** The same list for as long as nothing has changed. Where no address of any is known, they say so. */
  routesOf(model: CatalogModel): readonly Route[];
  /** Also those of which no address is known, beside others. */
  allOf(model: CatalogModel): readonly Route[];
  /** Each engine that there is. */
  of(upstreams: readonly Upstream[]): readonly Upstream[];
  /** Other addresses are in force. */
  changed(): void;
  /** Told after each change, until what it answers is called. */
  watch(listener: () => void): () => void;
}

/** Whoever knows something of engines. */
export interface Remembering {
  /** Forgets all but these, as choose.ts names engines. */
  retain(engines: ReadonlySet<string>): void;
}

/** What is known of an address that is gone is forgotten: another engine may have it tomorrow. */
export function forgetOthers(inForce: readonly Upstream[], all: readonly Remembering[]): void {
  const engines = new Set(inForce.map(engineOf));
  for (const one of all) one.retain(engines);
}

interface Expanded {
  /** Of the addresses. */
  version: number;
  routes: readonly Route[];
}

const isResolved = ({ upstream }: Route) => upstream.resolve;

export function replicas(addressesOf: (upstream: Upstream) => readonly string[]): Replicas {
  let version = 0;
  const expanded = new WeakMap<CatalogModel, Expanded>();
  let engines: { from: readonly Upstream[]; version: number; all: readonly Upstream[] } | null = null;
  const listeners = new Set<() => void>();

  function atAll(upstream: Upstream): readonly Upstream[] {
    if (!upstream.resolve) return [upstream];
    const addresses = addressesOf(upstream);
    if (addresses.length === 0) return [{ ...upstream, address: null }];
    return addresses.map((address) => ({ ...upstream, address }));
  }

  function routesAt(route: Route): readonly Route[] {
    if (!route.upstream.resolve) return [route];
    const all = atAll(route.upstream);
    return all.map((upstream) => ({ ...route, upstream, weight: route.weight / all.length }));
  }

  return {
    routesOf(model) {
      if (!model.routes.some(isResolved)) return model.routes;
      const known = expanded.get(model);
      if (known?.version === version) return known.routes;
      const all = model.routes.flatMap(routesAt);
      const found = all.filter(({ upstream }) => upstream.address !== null);
      const routes = found.length > 0 ? found : all;
      expanded.set(model, { version, routes });
      return routes;
    },
    allOf: (model) => model.routes.flatMap(routesAt),
    of(upstreams) {
      if (engines?.from === upstreams && engines.version === version) return engines.all;
      engines = { from: upstreams, version, all: upstreams.flatMap(atAll) };
      return engines.all;
    },
    changed() {
      version += 1;
      for (const listener of [...listeners]) listener();
    },
    watch(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
