/** The built-in simulator as an upstream. It serves the default catalog until an operator configures an engine. */
import { dialects } from "../core/protocol/dialects.ts";
import { defaultTimeouts, type Upstream } from "../core/upstream/target.ts";
import type { Configuration } from "./configuration.ts";

export const simulatorName = "simulator";
/** The simulator's URL before it is started: an address that can never be reached (RFC 6761). */
const unstartedUrl = "http://simulator.invalid/v1";

export function simulatorUpstream(url = unstartedUrl): Upstream {
  return {
    name: simulatorName,
    url,
    protocol: "openai-chat",
    dialect: { ...dialects.generic, completions: { suffix: "passed", echo: false, logprobs: true } },
    apiKey: null,
    timeouts: { ...defaultTimeouts },
  };
}

/** Whether a route leads to the simulator, so that it has to be started. */
export function needsSimulator(configuration: Configuration): boolean {
  return configuration.upstreams.some((upstream) => upstream.name === simulatorName);
}

/** The configuration with the simulator's actual address: `url` is its base, up to and with `/v1`. */
export function withSimulatorAt(configuration: Configuration, url: string): Configuration {
  const simulator = simulatorUpstream(url);
  const moved = (upstream: Upstream) => (upstream.name === simulatorName ? simulator : upstream);
  const models = [...configuration.catalog.models.values()].map((model) => ({
    ...model,
    routes: model.routes.map((route) => ({ ...route, upstream: moved(route.upstream) })),
  }));
  return {
    ...configuration,
    upstreams: configuration.upstreams.map(moved),
    catalog: { ...configuration.catalog, models: new Map(models.map((model) => [model.id, model])) },
  };
}
