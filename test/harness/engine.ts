// An engine in which every name is a canary, and a sluice.yaml that routes to it. If any of these names appears in what
// clients get, that is a leak.

import { decimalOf } from "../../src/core/inference/money.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "./simulator.ts";
import { type Sluice, type SluiceOptions, startSluice } from "./sluice.ts";

export const engineModel = "canary-engine-model-q4";
export const engineKey = "canary-engine-key-8c1f";
export const upstreamName = "canary-upstream-name";

/** A model that supports every feature. */
export const model = "acme/writer-1";
/** A model that supports text only. */
export const plainModel = "acme/plain-1";
/** A small model: 4,096 tokens of context, 256 of output. */
export const smallModel = "acme/small-1";

/** A model of each kind besides chat, at the same engine. The price of an input token is 100 nanos. */
export const kindModels = { embedding: "acme/embed-1", rerank: "acme/rank-1", completion: "acme/complete-1" } as const;

const all = "[tools, parallel_tools, vision, reasoning, structured_output, logprobs, files, audio_input]";

export interface Service extends Sluice {
  engine: Simulator;
  stop(): Promise<number>;
}

/** The fields `limits`, `metering` and `timeouts` (those of the upstream) are YAML flow maps. */
interface ServiceOptions {
  limits?: string;
  metering?: string;
  timeouts?: string;
  /** An additional line of the upstream's YAML. */
  upstream?: string;
  engine?: SimulatorOptions;
  engineUrl?: string;
  /** Further plans, by name, each a YAML flow map. */
  plans?: Record<string, string>;
  /** IDs of further chat models, which support every feature. */
  models?: string[];
  /** Whether the catalog also has the models of `kindModels`. */
  hasKinds?: boolean;
  /** Additional entries of `models`, as YAML. */
  extraModels?: string;
  /** Additional lines of sluice.yaml. */
  more?: string;
  /** Additional fields of every route, each preceded by a comma: `, instructions: head`. */
  route?: string;
  sluice?: SluiceOptions;
}

/** Starts a service in front of the engine. */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const engine = await startSimulator({
    key: engineKey,
    models: [engineModel],
    directives: "echo",
    ...options.engine,
  });
  const url = options.engineUrl ?? engine.url;
  const config = configTo(url, options);
  try {
    const sluice = await startSluice({
      config,
      secrets: [engineModel, engineKey, new URL(url).host],
      operatorsWords: [upstreamName],
      ...options.sluice,
      env: { ENGINE_KEY: engineKey, ...options.sluice?.env },
    });
    const stop = async () => {
      try {
        return await sluice.stop();
      } finally {
        await engine.stop();
      }
    };
    return { ...sluice, engine, stop };
  } catch (failure) {
    await engine.stop();
    throw failure;
  }
}

function configTo(url: string, options: ServiceOptions): string {
  const entry = (id: string, capabilities: string, context: number, output: number) => `
  - id: ${id}
    owned_by: acme
    created: 1790000000
    context_window: ${context}
    max_output_tokens: ${output}
    capabilities: ${capabilities}
    prices: { input: 0.1, cached_input: 0.01, cache_write: 0.125, output: 0.4 }
    extra_params: [top_k]
    routes: [{ upstream: ${upstreamName}, model: ${engineModel}, priority: 0, weight: 1${options.route ?? ""} }]`;
  const ofKind = ([kind, id]: [string, string]) => `
  - id: ${id}
    kind: ${kind}
    created: 1790000000
    context_window: 8192
    prices: { input: 0.1${kind === "completion" ? ", cached_input: 0.01, output: 0.4" : ""} }
    extra_params: [input_type]
    routes: [{ upstream: ${upstreamName}, model: ${engineModel} }]`;
  return [
    "upstreams:",
    `  ${upstreamName}:`,
    `    url: "${url}"`,
    "    protocol: openai-chat",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of sluice.yaml for a variable
    '    api_key: "${ENGINE_KEY}"',
    ...(options.timeouts ? [`    timeouts: ${options.timeouts}`] : []),
    ...(options.upstream ? [`    ${options.upstream}`] : []),
    `models:${entry(model, all, 131072, 16384)}${entry(plainModel, "[]", 131072, 16384)}${entry(smallModel, "[]", 4096, 256)}`,
    ...(options.models ?? []).map((id) => entry(id, all, 131072, 16384).slice(1)),
    ...(options.hasKinds ? Object.entries(kindModels).map((one) => ofKind(one).slice(1)) : []),
    ...(options.extraModels ? [options.extraModels.slice(1)] : []),
    "plans:",
    // The plan of the demo organization has no limits, because tests send more requests in a minute than a usual plan
    // allows.
    "  pro: {}",
    ...Object.entries(options.plans ?? {}).map(([name, limits]) => `  ${name}: ${inMoney(limits)}`),
    ...(options.limits ? [`limits: ${options.limits}`] : []),
    `metering: { currency: USD${(options.metering ?? "{}").replace(/^\{ ?/, ", ").replace(/, \}$/, " }")}`,
    ...(options.more ? [options.more] : []),
    "",
  ].join("\n");
}

/** Converts limits from nanos, in which tests count, to the money that sluice.yaml contains. */
export function inMoney(limits: string): string {
  return limits.replaceAll(
    /\b((?:session|week|month)"?): ?(\d+)/g,
    (_, name, nanos) => `${name}: ${decimalOf(Number(nanos), 9)}`,
  );
}

/** A user's message for the simulator: directives, then the text that the simulator echoes. */
export function says(directives: string, text = "hello there"): { role: "user"; content: string }[] {
  return [{ role: "user", content: `${directives ? `[simulator: ${directives}] ` : ""}${text}` }];
}

/**
 * Minimal request bodies: the key is the path of an inference endpoint; the value makes a body for it, without `model`.
 */
export const inferenceBodies: Record<string, (directives: string) => object> = {
  "/v1/chat/completions": (directives) => ({ messages: says(directives) }),
  "/v1/messages": (directives) => ({ messages: says(directives), max_tokens: 16_000 }),
  "/v1/responses": (directives) => ({ input: says(directives) }),
};

/** `count` words, each of which the simulator counts as one token. */
export function words(count: number): string {
  return Array(count).fill("hello").join(" ");
}

/** The data of each event of an event stream, including `[DONE]`. */
export async function eventsOf(response: Response): Promise<string[]> {
  return (await response.text())
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: "))
    .map((frame) => frame.slice("data: ".length));
}

interface ErrorBody {
  error: { code: string; param: string | null; message: string; type: string; request_id: string };
}

export async function errorOf(response: Response): Promise<ErrorBody["error"]> {
  return ((await response.json()) as ErrorBody).error;
}

/** The status, code and parameter of an error response. */
export async function refusalOf(response: Response): Promise<(number | string | null)[]> {
  const { code, param } = await errorOf(response);
  return [response.status, code, param];
}
