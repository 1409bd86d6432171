// Starts a Sluice in front of two or three fake engines that fail on command (wall.ts). Each case has a model of its
// own: a route's health is tracked by its model's name, so no case affects another.

import { type Sluice, type SluiceOptions, startSluice } from "../harness/sluice.ts";
import { startWall, type Wall } from "./wall.ts";

export const engineProtocols = ["openai-chat", "anthropic-messages", "openai-responses"] as const;
export type Protocol = (typeof engineProtocols)[number];

export interface Route {
  /** The number of the engine: the engine 0 is tried first. `dead` is an address on which no program listens. */
  wall: number | "dead";
  /** The engine's name for the model, which selects the fault. */
  model: string;
  priority?: number;
  weight?: number;
  contextWindow?: number;
  /** The engine's protocol; Chat Completions by default. */
  protocol?: Protocol;
  /** Whether the route's engine can continue a response of an engine that failed in the middle. */
  continues?: boolean;
}

export interface Case {
  id: string;
  routes: Route[];
  timeouts?: string;
}

export interface Rig {
  sluice: Sluice;
  walls: Wall[];
  /** The number of requests that the engines got for their model of this name. */
  asked(model: string): number;
  stop(): Promise<void>;
}

/**
 * The names of the upstreams that speak Chat Completions. For each other protocol, an engine has an upstream whose name
 * has the protocol appended.
 */
export const upstreamNames = ["canary-first", "canary-second", "canary-third"];
const nameOf = (wall: number, protocol: Protocol) =>
  protocol === "openai-chat" ? upstreamNames[wall] : `${upstreamNames[wall]}-${protocol}`;

export async function startRig(
  cases: readonly Case[],
  options: SluiceOptions = {},
  more = "",
  settings = "",
): Promise<Rig> {
  const walls = await Promise.all(upstreamNames.map(() => startWall()));
  const dead = await startWall();
  await dead.stop();
  const upstreams = walls.flatMap(({ url }, wall) =>
    engineProtocols.map(
      (protocol) => `  ${nameOf(wall, protocol)}: { url: "${url}", protocol: ${protocol}${settings} }`,
    ),
  );
  const route = ({ wall, model, priority = 0, weight = 1, contextWindow, protocol, continues }: Route) =>
    `{ upstream: ${wall === "dead" ? "canary-dead" : nameOf(wall, protocol ?? "openai-chat")}, model: ${model}, priority: ${priority}, weight: ${weight}${contextWindow ? `, context_window: ${contextWindow}` : ""}${continues ? ", continue: true" : ""} }`;
  const model = ({ id, routes, timeouts }: Case) => `  - id: ${id}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 16384
    prices: { input: 0.1, output: 0.4 }
${timeouts ? `    timeouts: ${timeouts}\n` : ""}    routes: [${routes.map(route).join(", ")}]`;
  const config = [
    "upstreams:",
    ...upstreams,
    `  canary-dead: { url: "${dead.url}" }`,
    ...(more.includes("metering:") ? [] : ["metering: { currency: USD }"]),
    "models:",
    ...cases.map(model),
    "plans: { pro: {} }",
    more,
  ].join("\n");
  const sluice = await startSluice({
    config,
    secrets: walls.map(({ url }) => new URL(url).host),
    operatorsWords: upstreamNames,
    ...options,
  });
  return {
    sluice,
    walls,
    asked: (name) => walls.reduce((sum, wall) => sum + wall.asked.filter((one) => one === name).length, 0),
    async stop() {
      await sluice.stop();
      await Promise.all(walls.map((wall) => wall.stop()));
    },
  };
}
