// Starts the service in front of a real engine, with a model of each kind that the engine supports.

import type { Operation } from "../engines/operation-questions.ts";
import { operationServers } from "../engines/operation-servers.ts";

/** The number of the engine's process and its URL, set by operations-run.ts. */
const { OPERATION_SERVER = "", OPERATION_ROOT = "" } = process.env;
export const server = operationServers[Number(OPERATION_SERVER)]!;
export const root = OPERATION_ROOT;
if (OPERATION_SERVER === "" || !server || !root) throw new Error("Start this by: npm run test:clients -- operations");

const kinds: Partial<Record<Operation, string>> = {
  embeddings: "embedding",
  rerank: "rerank",
  completions: "completion",
};
/** The price of a token in nanos, and on the next line the corresponding price of a million tokens in sluice.yaml. */
export const price = 100;
const price_million = price / 1000;

export const modelOf = (operation: Operation) => `acme/${operation}`;
export const has = (operation: Operation) => server.models[operation] !== undefined;
/** The dialect of the upstream. The engine infinity has no dialect of its own. */
export const dialect = server.engine === "infinity" ? "generic" : server.engine;

export function configuration(url: string): string {
  const models = Object.entries(kinds).flatMap(([operation, kind]) => {
    const name = server.models[operation as Operation];
    if (name === undefined) return [];
    const output = kind === "completion" ? `, output: ${price_million}` : "";
    return `
  - id: ${modelOf(operation as Operation)}
    kind: ${kind}
    created: 1790000000
    context_window: 1000000
    prices: { input: ${price_million}${output} }
    routes: [{ upstream: engine, model: "${name}" }]`;
  });
  const upstream = `  engine: { url: "${url}/v1", protocol: openai-chat, dialect: ${dialect} }`;
  return `upstreams:\n${upstream}\nmetering: { currency: USD }\nmodels:${models.join("")}\nplans: { unlimited: {} }\n`;
}
