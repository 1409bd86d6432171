/**
 * The current routes of a model: one for each address of a host name that is resolved at intervals.
 *
 * Also the drained engines as this process knows them: they get no new requests until an operator resumes them.
 */

import type { Drain } from "../store/drain.ts";
import type { Upstream } from "../upstream/target.ts";
import type { CatalogModel, Route } from "./catalog.ts";
import { engineOf } from "./choose.ts";

export interface Replicas {
  /**
   * The routes with a known address, or all routes if none has a known address; without routes whose engines are
   * drained. Returns the same list while nothing changes.
   */
  routesOf(model: CatalogModel): readonly Route[];
  /** All routes, also those without a known address and those whose engines are drained. */
  allOf(model: CatalogModel): readonly Route[];
  /** The engines of these upstreams, one for each address. */
  of(upstreams: readonly Upstream[]): readonly Upstream[];
  /** Reports that the addresses in force or the drained engines have changed. */
  changed(): void;
  /** Calls `listener` after each change, until the function it returns is called. */
  watch(listener: () => void): () => void;
}

/** An object that keeps facts about engines, such as their health. */
interface Remembering {
  /** Forgets all engines but these identities (choose.ts). */
  retain(engines: ReadonlySet<string>): void;
}

/**
 * Makes each of `all` (objects that keep facts about engines) forget the addresses that a host name no longer has:
 * another engine may get such an address.
 */
export function forgetOthers(inForce: readonly Upstream[], all: readonly Remembering[]): void {
  const engines = new Set(inForce.map(engineOf));
  for (const one of all) one.retain(engines);
}

interface Expanded {
  version: number;
  routes: readonly Route[];
}

const isResolved = ({ upstream }: Route) => upstream.resolve;

export function replicas(addressesOf: (upstream: Upstream) => readonly string[], drained = new Drained()): Replicas {
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
      if (drained.isEmpty && !model.routes.some(isResolved)) return model.routes;
      const known = expanded.get(model);
      if (known?.version === version) return known.routes;
      const all = model.routes.flatMap(routesAt);
      const found = all.filter(({ upstream }) => upstream.address !== null);
      const routes = (found.length > 0 ? found : all).filter(({ upstream }) => !drained.has(upstream));
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

export type DrainSeen = Pick<Drain, "upstream" | "replica" | "drainedAt" | "until">;

export class Drained {
  #engines = new Set<string>();
  #drains: readonly DrainSeen[] = [];

  get isEmpty(): boolean {
    return this.#engines.size === 0;
  }

  get drains(): readonly DrainSeen[] {
    return this.#drains;
  }

  /** Identifies the set of drained engines: two sets with the same engines have the same text. */
  get identity(): string {
    return [...this.#engines].sort().join("\n\n");
  }

  has({ name, address }: Pick<Upstream, "name" | "address">): boolean {
    if (this.isEmpty) return false;
    return this.#engines.has(identityOf(name, "")) || (address != null && this.#engines.has(identityOf(name, address)));
  }

  /** Replaces the set of drained engines. Returns whether the set changed. */
  set(all: readonly DrainSeen[]): boolean {
    this.#drains = all;
    const engines = new Set(all.map(({ upstream, replica }) => identityOf(upstream, replica ?? "")));
    const isSame = engines.size === this.#engines.size && this.#engines.isSupersetOf(engines);
    this.#engines = engines;
    return !isSame;
  }
}

const identityOf = (upstream: string, replica: string) => `${upstream}\n${replica}`;
