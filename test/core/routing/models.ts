// Models and engines for tests: they have no special capabilities, and cost a billionth for each token.

import type { CatalogModel, Route } from "../../../src/core/routing/catalog.ts";
import { type Capacity, defaultTimeouts, type Upstream } from "../../../src/core/upstream/target.ts";

/** A capacity without limits, except for the given ones. */
export const capacityOf = (limits: Partial<Capacity> = {}): Capacity => ({
  ...{ concurrent_max: null, tokens_in_flight_max: null, reserved_percent: 0, queue_max: 1000, queue_ms_max: 30_000 },
  ...limits,
});

export const upstreamOf = (url: string, more: Partial<Upstream> = {}): Upstream => ({
  ...{ name: "engine", url, protocol: "openai-chat", apiKey: null, timeouts: defaultTimeouts },
  ...more,
});

export const routeTo = (upstream: Upstream, more: Partial<Route> = {}): Route => ({
  ...{ upstream, model: "m", priority: 0, weight: 1 },
  ...more,
});

export const modelOf = (routes: Route[], more: Partial<CatalogModel> = {}): CatalogModel => ({
  ...{ id: "acme/m", ownedBy: "acme", created: 1, contextTokens: 100_000, outputTokens_max: 10_000 },
  ...{ capabilities: new Set(), extraParams: [], routes },
  prices: { input: 1000, cachedInput: 1000, cacheWrite: 1000, output: 1000 },
  ...more,
});
