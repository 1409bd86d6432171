/**
 * HTTP: the only room that knows Elysia, Request and Response. The app mounts the operations, each at its method and path,
 * and listens.
 */
import { Elysia } from "elysia";
import { Fault } from "../inference/fault.ts";
import { encodeFault } from "../protocol/openai-chat/fault.ts";
import type { Connection } from "./call.ts";
import type { Dependencies } from "./dependencies.ts";
import { faultBodyOf } from "./fault-body.ts";
import { frame, identified, methodNotAllowed, type Serve } from "./frame.ts";
import { json } from "./json.ts";
import type { Operation } from "./operation.ts";
import { metricsOperations, operations, probes, unlistedOperations } from "./operations.ts";
import { hasId, isIdThere } from "./path.ts";
import { serveOperation } from "./serve-operation.ts";
import { unknownPath } from "./unknown-path.ts";

/** The service as clients see it; `metrics` says whether /metrics is on this port. */
export function app(dependencies: Dependencies, options: { metrics: boolean }) {
  return mount(dependencies, [...operations, ...unlistedOperations, ...(options.metrics ? metricsOperations : [])]);
}

/** What only the operator's own port answers. */
export function operatorApp(dependencies: Dependencies) {
  return mount(dependencies, [...metricsOperations, ...probes]);
}

/** Whatever is mounted is an operation: with its scope, its guards and its description. */
export function mount(dependencies: Dependencies, mounted: readonly Operation[]) {
  const elysia = new Elysia({ strictPath: true, handler: { standardHostname: false } });
  // The frame answers faults; what comes here is a defect of the frame itself.
  elysia.onError(({ error }) => {
    const requestId = `req_${dependencies.newId()}`;
    dependencies.log.event("error", "unhandled", { request_id: requestId, cause: String(error) });
    const fault = new Fault("internal_error", "The service failed to handle this request. Please try again.");
    return identified(json(500, encodeFault(fault, requestId)), requestId);
  });
  const paths = [...Map.groupBy(mounted, ({ path }) => path).values()] as [Operation, ...Operation[]][];
  const connectionOf = connections(dependencies);
  const unknown = frame(dependencies, unknownPath(paths.map(([first]) => first)));
  const route = (method: string, pattern: string, serve: Serve, detail: object) =>
    elysia.route(method, pattern, ({ request, server }) => serve(request, connectionOf(request, server)), {
      parse: "none",
      detail,
    });
  for (const here of paths) {
    const [first] = here;
    const pattern = patternOf(first);
    const whereIdIs = (serve: Serve): Serve =>
      hasId(first)
        ? (request, connection) => (isIdThere(first, request) ? serve : unknown)(request, connection)
        : serve;
    for (const operation of here) {
      const { operationId, tag, summary, description } = operation;
      const serve = whereIdIs(serveOperation(dependencies, operation));
      for (const method of methodsOf(operation))
        route(method, pattern, serve, { operationId, tags: [tag], summary, description });
    }
    route("ALL", pattern, whereIdIs(otherMethod(dependencies, here)), { hide: true });
  }
  route("ALL", "/*", unknown, { hide: true });
  return elysia;
}

/** HEAD is GET to all who answer, so that what is said of it, and its length, is the same. */
function methodsOf({ method }: Operation): string[] {
  return method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()];
}

function otherMethod(dependencies: Dependencies, here: readonly [Operation, ...Operation[]]): Serve {
  const [{ path, faultShape }] = here;
  const allow = here.flatMap(methodsOf).join(", ");
  return frame(dependencies, {
    path,
    faultBody: faultBodyOf(faultShape),
    work({ request }) {
      for (const { refusesMethod } of here) {
        const refusal = refusesMethod?.(request);
        if (refusal) throw refusal;
      }
      throw methodNotAllowed(request.method, allow);
    },
  });
}

type Server = Pick<Bun.Server<unknown>, "requestIP" | "timeout">;

function connections({ bounds, limits }: Dependencies) {
  return (request: Request, server: Server | null): Connection => ({
    address: () => bounds.clientAddress(server?.requestIP(request)?.address ?? "", request.headers),
    keepOpen: (isKept) => server?.timeout(request, isKept ? 0 : seconds(limits.idle_ms)),
  });
}

/** An id without a prefix may hold slashes, as ids of models do. */
function patternOf({ path, idPrefix }: Operation): string {
  return path.replace("{id}", idPrefix === undefined ? "*" : ":id");
}

export interface Listening {
  url: string;
  /** Stops accepting; requests under way go on. */
  stop(): Promise<void>;
}

/** Above our own limit, so that a body that is too large gets our answer and not the runtime's bare 413. */
const runtime_body_bytes_max = 1024 * 1024 * 1024;

export interface ListeningOptions {
  host: string;
  port: number;
  /** Silence on a connection that carries no request of ours yet; the runtime takes it for the deadline of a head, too. */
  idle_ms: number;
}

export function listen(elysia: ReturnType<typeof app>, address: ListeningOptions): Listening {
  const server: NonNullable<typeof elysia.server> = Bun.serve({
    hostname: address.host,
    port: address.port,
    development: false,
    // Else a port that is taken would be shared in silence.
    reusePort: false,
    idleTimeout: seconds(address.idle_ms),
    maxRequestBodySize: runtime_body_bytes_max,
    fetch: (request) => elysia.fetch(withOrigin(request)),
  });
  elysia.server = server;
  return { url: `http://${named(address.host)}:${server.port}`, stop: () => server.stop() };
}

/**
 * Without a Host that is one (HTTP/1.0, as plain probes of balancers speak) the runtime gives a bare path, in which Elysia
 * would look for the path behind an origin: `/v1/models` would be `/models`, and `/anything/metrics` the metrics. The same
 * request, since the runtime knows its connection by it.
 */
function withOrigin(request: Request): Request {
  const { url } = request;
  return url.startsWith("/") ? Object.defineProperty(request, "url", { value: `http://localhost${url}` }) : request;
}

/** As the runtime takes it; 0 would be no limit. */
function seconds(ms: number): number {
  return Math.max(1, Math.round(ms / 1000));
}

/** How a person reaches a host that was bound to. */
function named(host: string): string {
  if (["127.0.0.1", "0.0.0.0", "::", "::1"].includes(host)) return "localhost";
  return host.includes(":") ? `[${host}]` : host;
}
