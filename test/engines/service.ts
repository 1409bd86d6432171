// Starts one node in front of the scripted engine. Each case has a model of its own, and a second model whose engine
// has a healthy spare.

import { wires } from "../core/protocol/pairs/wires.ts";
import { contractProblems } from "../harness/contract.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { type Client, clients, type EngineCase, type Mode, modesOf } from "./case.ts";
import { requestOf, type Seen, seenBy } from "./clients.ts";
import { type ScriptedEngine, spareModel, startScriptedEngine } from "./engine.ts";

export interface Outcome extends Seen {
  client: Client;
  mode: Mode;
  /** The bodies of the requests that the engine got. */
  asked: Record<string, unknown>[];
  /** The violations of the client's protocol in the response. */
  problems: string[];
}

export interface CaseService {
  /** Runs a case with every client in every mode, one after the other. */
  run(one: EngineCase): Promise<Outcome[]>;
  sluice: Sluice;
  stop(): Promise<void>;
}

const engineProtocols = { chat: "openai-chat", messages: "anthropic-messages", responses: "openai-responses" };
/**
 * Output limits above and below `metering.unstreamed_tokens_max`, which decides whether the service asks the engine to
 * stream.
 */
const streamed_cap = 4096;
const whole_cap = 256;

export async function startCaseService(cases: readonly EngineCase[]): Promise<CaseService> {
  const engine = startScriptedEngine(cases);
  const sluice = await startSluice({ config: configTo(engine.url, cases) });
  return {
    sluice,
    async run(one) {
      const outcomes: Outcome[] = [];
      for (const mode of modesOf(one))
        for (const client of one.clients ?? clients)
          outcomes.push(await outcomeOf(one, client, mode, { sluice, engine }));
      return outcomes;
    },
    async stop() {
      await sluice.stop().finally(() => engine.stop());
    },
  };
}

interface Parts {
  sluice: Sluice;
  engine: ScriptedEngine;
}

async function outcomeOf(one: EngineCase, client: Client, mode: Mode, { sluice, engine }: Parts): Promise<Outcome> {
  const { path } = wires[client];
  const stream = mode === "s";
  const engineModel = mode === "p" ? `${one.id} with a spare` : one.id;
  engine.asked.delete(engineModel);
  const withUsage = stream && client === "chat" ? { stream_options: { include_usage: true } } : {};
  const request = requestOf(one, client, mode === "w" ? whole_cap : streamed_cap);
  const body = { ...request, model: idOf(one, mode), ...withUsage, stream };
  const response = await fetch(sluice.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${sluice.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const problems = contractProblems("POST", path, response, text);
  const seen = seenBy(client, response.status, text, stream);
  return { client, mode, problems, asked: engine.asked.get(engineModel) ?? [], ...seen };
}

function idOf({ id }: EngineCase, mode: Mode): string {
  return `acme/${id}${mode === "p" ? "-with-a-spare" : ""}`;
}

function configTo(url: string, cases: readonly EngineCase[]): string {
  const upstreams = new Map<string, string>();
  const models = cases.flatMap((one) => {
    const protocol = engineProtocols[one.engine ?? "chat"];
    const upstream = [protocol, ...(one.dialect ? [one.dialect] : []), ...(one.rows ? ["rows"] : [])].join("-");
    const rows = one.rows ? `, dialect_rows: { ${one.rows} }` : "";
    const dialect = one.dialect ? `, dialect: ${one.dialect}${rows}` : "";
    upstreams.set(upstream, `  ${upstream}: { url: "${url}/v1", protocol: ${protocol}${dialect} }`);
    const own = `{ upstream: ${upstream}, model: "${one.id}", priority: 0, weight: 1 }`;
    const failing = `{ upstream: ${upstream}, model: "${one.id} with a spare", priority: 0, weight: 1 }`;
    const spare = `{ upstream: healthy, model: ${spareModel}, priority: 1, weight: 1 }`;
    const bounds = one.bounds ? `\n    bounds: ${one.bounds}` : "";
    return [modelOf(idOf(one, "s"), own, bounds), modelOf(idOf(one, "p"), `${failing}, ${spare}`, bounds)];
  });
  return [
    "upstreams:",
    `  healthy: { url: "${url}/v1", protocol: openai-chat }`,
    ...upstreams.values(),
    "metering: { currency: USD }",
    "models:",
    ...models,
    "plans: { pro: {} }",
    "",
  ].join("\n");
}

function modelOf(id: string, routes: string, bounds: string): string {
  return `  - id: ${id}
    owned_by: acme
    created: 1790000000
    context_window: 200000
    max_output_tokens: 16384
    capabilities: [tools, parallel_tools, vision, reasoning, structured_output, logprobs]
    prices: { input: 0.1, output: 0.4 }${bounds}
    routes: [${routes}]`;
}
