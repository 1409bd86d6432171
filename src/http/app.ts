/**
 * HTTP: the only room that knows Elysia, Request and Response. The app holds the doors of all routes, gives every answer
 * its request id, and listens.
 */
import { Elysia } from "elysia";
import { Fault } from "../inference/fault.ts";
import { encodeFault } from "../protocol/openai-chat/fault.ts";
import { door, identified, type Route, routeNotFound } from "./door.ts";
import { faultBodyForPath } from "./fault-body.ts";
import type { House } from "./house.ts";
import { json } from "./json.ts";
import { chatRoute } from "./routes/chat.ts";
import { contractRoutes } from "./routes/contract.ts";
import { countTokensRoute } from "./routes/count-tokens.ts";
import { healthRoutes, metricsRoute } from "./routes/health.ts";
import { messagesRoute } from "./routes/messages.ts";
import { modelRoutes } from "./routes/models.ts";
import { receiptRoute } from "./routes/receipt.ts";
import { responsesRoutes } from "./routes/responses.ts";
import { usageRoute } from "./routes/usage.ts";

export function routesOf(house: House, options: { metrics: boolean }): Route[] {
  return [
    ...modelRoutes(house),
    chatRoute(house),
    messagesRoute(house),
    countTokensRoute(house),
    ...responsesRoutes(house),
    usageRoute(house),
    receiptRoute(house),
    ...healthRoutes(house),
    ...contractRoutes(house),
    ...(options.metrics ? [metricsRoute(house)] : []),
  ];
}

/** The service as clients see it; `metrics` says whether /metrics is on this port. */
export function app(house: House, options: { metrics: boolean }) {
  return mounted(house, routesOf(house, options));
}

/** What only the operator's own port answers. */
export function operatorApp(house: House) {
  return mounted(house, [metricsRoute(house), ...healthRoutes(house)]);
}

function mounted(house: House, routes: Route[]) {
  const elysia = new Elysia({ strictPath: true, handler: { standardHostname: false } });
  // Handlers answer their own faults; what comes here is a defect of the frame around them.
  elysia.onError(({ error }) => {
    const requestId = `req_${house.newId()}`;
    house.log.event("error", "unhandled", { request_id: requestId, cause: String(error) });
    const fault = new Fault("internal_error", "The service failed to handle this request. Please try again.");
    return identified(json(500, encodeFault(fault, requestId)), requestId);
  });
  for (const route of [...routes, unknownRoute]) {
    const answer = door(house, route);
    elysia.all(patternOf(route.path), ({ request, server }) => answer(request, () => server?.timeout(request, 0)), {
      parse: "none",
    });
  }
  return elysia;
}

/** A last parameter may hold slashes, as ids of models do. */
function patternOf(path: string): string {
  return path.replace(/\{[^}]+\}$/, "*").replaceAll(/\{([^}]+)\}/g, ":$1");
}

const nothingHere = () => {
  throw routeNotFound();
};

/** Every path that no other route names, whatever the method. */
const unknownRoute: Route = {
  path: "/*",
  methods: { GET: nothingHere, POST: nothingHere, DELETE: nothingHere },
  otherwise: nothingHere,
  faultBody: faultBodyForPath,
};

export interface Listening {
  url: string;
  /** Stops accepting; requests under way go on. */
  stop(): Promise<void>;
}

/** Above our own limit, so that a body that is too large gets our answer and not the runtime's bare 413. */
const runtime_body_bytes_max = 1024 * 1024 * 1024;
/** Silence on a connection that carries no request of ours yet. */
const idle_s = 60;

export function listen(elysia: ReturnType<typeof app>, address: { host: string; port: number }): Listening {
  const server: NonNullable<typeof elysia.server> = Bun.serve({
    hostname: address.host,
    port: address.port,
    development: false,
    // Else a port that is taken would be shared in silence.
    reusePort: false,
    idleTimeout: idle_s,
    maxRequestBodySize: runtime_body_bytes_max,
    fetch: elysia.fetch,
  });
  elysia.server = server;
  return { url: `http://${named(address.host)}:${server.port}`, stop: () => server.stop() };
}

/** How a person reaches a host that was bound to. */
function named(host: string): string {
  if (["127.0.0.1", "0.0.0.0", "::", "::1"].includes(host)) return "localhost";
  return host.includes(":") ? `[${host}]` : host;
}
