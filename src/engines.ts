/** What a node knows of its engines: the client, the health of routes and what is in flight, with the checks that ask them. */
import type { Configuration } from "./config/configuration.ts";
import type { Log } from "./http/log.ts";
import { checks } from "./routing/checks.ts";
import { type Health, health } from "./routing/health.ts";
import { loads } from "./routing/loads.ts";
import { type Pool, pool } from "./routing/pool.ts";
import { type Queues, queues } from "./routing/queues.ts";
import { type RouteView, routesOf } from "./routing/view.ts";
import { type Client, client } from "./upstream/http1/client.ts";

export interface Engines {
  client: Client;
  health: Health;
  pool: Pool;
  queues: Queues;
  /** As they are now. */
  routes(): RouteView[];
}

interface Parts {
  configuration(): Configuration;
  log: Log;
  ending: AsyncDisposableStack;
}

export function engines({ configuration, log, ending }: Parts): Engines {
  const now_ms = () => performance.now();
  const one = { client: client(), health: health(), pool: pool(), queues: queues(now_ms) };
  ending.defer(() => one.client.close());
  const checking = checks({
    ...one,
    upstreams: () => configuration().upstreams,
    now_ms,
    turned: ({ name: upstream }, isUp) =>
      log.event(isUp ? "info" : "error", isUp ? "upstream_up" : "upstream_down", { upstream }),
  });
  ending.defer(() => checking.stop());
  const loading = loads({ ...one, upstreams: () => configuration().upstreams, now_ms });
  ending.defer(() => loading.stop());
  return { ...one, routes: () => routesOf(configuration().catalog, one, now_ms()) };
}
