/**
 * The simulator: an OpenAI-compatible engine without a model. It is deterministic, says that it is a simulator, answers
 * at a set pace and fails on request (directives.ts, docs/simulator.md). Clients reach it over HTTP like any engine.
 * The simulator shares only the parser of request targets with the rest of the service, so that tests against it check
 * the service's codecs independently.
 */
import { targetOf } from "../../core/protocol/target.ts";
import { type ChatOptions, chat, type Handler } from "./chat.ts";
import { Clock } from "./clock.ts";
import { completions } from "./completions.ts";
import { parseDirectives } from "./directives.ts";
import { errorResponse } from "./errors.ts";
import { embeddings, measured, rerank } from "./measures.ts";
import { SimulatorRefusal } from "./refusal.ts";
import type { Watch } from "./watch.ts";

export interface SimulatorOptions extends ChatOptions {
  port?: number;
  hostname?: string;
  /** The required key. Absent: any key, or none, is accepted. */
  key?: string;
  /** The models that GET /v1/models lists. Requests for other models are also accepted. */
  models?: string[];
  /** Makes the observer (watch.ts) of each request, except those of /health. */
  watch?: (request: Request, path: string) => Watch;
}

export interface Simulator {
  /** The base URL with `/v1`, without a trailing slash. */
  url: string;
  port: number;
  stop(): Promise<void>;
}

const body_bytes_max = 128 * 1024 * 1024;

/**
 * Starts the simulator. Throws the error of Bun.serve if the port is taken, and a SimulatorRefusal if a directive of
 * the options is unknown.
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  parseDirectives(options.directives ?? "");
  const clock = new Clock();
  const hostname = options.hostname ?? "127.0.0.1";
  const server = Bun.serve({
    port: options.port ?? 0,
    hostname,
    development: false,
    // Without this setting, Bun would share a port that another process listens on, which would then get half of the
    // requests.
    reusePort: false,
    maxRequestBodySize: body_bytes_max,
    // Bun's default, ten seconds, would break a stream that is silent on purpose.
    idleTimeout: 0,
    fetch: (request) => respond(request, options, clock),
    error: () => errorResponse(new SimulatorRefusal(500, "Simulator: a defect of the simulator."), null),
  });
  return {
    url: `http://${hostname}:${server.port}/v1`,
    port: server.port ?? 0,
    stop: () => server.stop(true),
  };
}

async function respond(request: Request, options: SimulatorOptions, clock: Clock): Promise<Response> {
  const { path } = targetOf(request.url);
  if (path === "/health") return Response.json({ status: "ok", engine: "Sluice simulator" });
  const watch = options.watch?.(request, path);
  let response: Response;
  try {
    response = await routed(path, request, options, clock, watch);
  } catch (error) {
    watch?.ended(request.signal.aborted ? "client-left" : "complete");
    const defect = () => new SimulatorRefusal(500, `Simulator: a defect of the simulator: ${error}`);
    response = errorResponse(error instanceof SimulatorRefusal ? error : defect(), null);
  }
  watch?.status(response.status);
  return response;
}

const answers: Partial<Record<string, Handler>> = {
  "/v1/chat/completions": chat,
  "/v1/completions": completions,
  "/v1/embeddings": measured(embeddings),
  "/v1/rerank": measured(rerank),
};

async function routed(
  path: string,
  request: Request,
  options: SimulatorOptions,
  clock: Clock,
  watch: Watch | undefined,
): Promise<Response> {
  if (options.key !== undefined && request.headers.get("authorization") !== `Bearer ${options.key}`) {
    throw new SimulatorRefusal(401, "Simulator: this key is not the one that was set.", "invalid_api_key");
  }
  const made = answers[path];
  if (made) {
    if (request.method === "POST") return made(request, options, clock, watch);
    throw new SimulatorRefusal(405, "Simulator: this path takes POST.", "method_not_allowed");
  }
  const body = modelsBody(path, options);
  if (body === null) throw new SimulatorRefusal(404, "Simulator: there is nothing at this path.", "unknown_url");
  watch?.ended("complete");
  return Response.json(body);
}

function modelsBody(path: string, options: SimulatorOptions): object | null {
  const model = (id: string) => ({ id, object: "model", created: 1_790_000_000, owned_by: "sluice-simulator" });
  if (path === "/v1/models") return { object: "list", data: (options.models ?? ["simulator"]).map(model) };
  if (!path.startsWith("/v1/models/")) return null;
  try {
    return model(decodeURIComponent(path.slice("/v1/models/".length)));
  } catch {
    return null;
  }
}
