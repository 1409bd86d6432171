/**
 * The door of every route: one request id, one place where a fault becomes an answer, one line in the log. Behind it, a
 * handler is a straight line that returns a Response or throws a Fault.
 */
import { asFault, Fault } from "../inference/fault.ts";
import { Call } from "./call.ts";
import type { House } from "./house.ts";
import { json } from "./json.ts";

export type Method = "GET" | "POST" | "DELETE";
export type Handler = (call: Call) => Response | Promise<Response>;
/** A fault's body in the protocol of the route; a few routes speak that of whoever asks. */
export type FaultBody = (fault: Fault, requestId: string, request: Request) => unknown;
/** What the clients of a route read of a fault in headers, beyond what all routes send. */
export type FaultHeaders = (fault: Fault) => Record<string, string>;

export interface Route {
  /** As the contract writes it: `/v1/models/{id}`. */
  path: string;
  methods: Partial<Record<Method, Handler>>;
  /** What answers other methods; without it, 405. */
  otherwise?: Handler;
  faultBody: FaultBody;
  faultHeaders?: FaultHeaders;
}

export function door(house: House, route: Route): (request: Request, keepOpen: () => void) => Promise<Response> {
  const allow = allowed(route);
  return async (request, keepOpen) => {
    const call = new Call(`req_${house.newId()}`, request, route.path, keepOpen);
    house.lifecycle.enter(call);
    let response: Response;
    try {
      response = await handlerOf(route, request.method, allow)(call);
    } catch (thrown) {
      response = answerFault(call, asFault(thrown), route);
    }
    if (!call.streaming) house.closed(call, response.status);
    return identified(request.method === "HEAD" ? withoutBody(response) : response, call.requestId);
  };
}

/** Every answer names its request, in the words of each family of clients (decisions.md, Identifiers and headers). */
export function identified(response: Response, requestId: string): Response {
  response.headers.set("x-service-request-id", requestId);
  response.headers.set("x-request-id", requestId);
  response.headers.set("request-id", requestId);
  return response;
}

function handlerOf(route: Route, method: string, allow: string): Handler {
  const handler = route.methods[(method === "HEAD" ? "GET" : method) as Method];
  if (handler) return handler;
  if (route.otherwise) return route.otherwise;
  throw methodNotAllowed(method, allow);
}

export function methodNotAllowed(method: string, allow: string): Fault {
  const named = /^[A-Z]{1,16}$/.test(method) ? method : "that method";
  return new Fault("method_not_allowed", `This path does not answer ${named}. It answers ${allow}.`, {
    headers: { allow },
  });
}

function allowed(route: Route): string {
  const methods = Object.keys(route.methods);
  return (methods.includes("GET") ? ["GET", "HEAD", ...methods.filter((method) => method !== "GET")] : methods).join(
    ", ",
  );
}

export function routeNotFound(): Fault {
  return new Fault(
    "route_not_found",
    "There is nothing at this path. The contract at /openapi.json lists what there is.",
  );
}

export function answerFault(call: Call, fault: Fault, route: Pick<Route, "faultBody" | "faultHeaders">): Response {
  const { headers, retryAfterSeconds, cause } = fault.details;
  call.notes.code = fault.code;
  if (fault.status >= 500) call.notes.cause = cause ?? fault;
  return json(fault.status, route.faultBody(fault, call.requestId, call.request), {
    ...(isFinal(fault) ? { "x-should-retry": "false" } : {}),
    ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterSeconds)) }),
    ...headers,
    ...route.faultHeaders?.(fault),
  });
}

/** Whether the same request cannot succeed within a minute: clients that obey stop at once, instead of hammering. */
function isFinal({ status, details }: Fault): boolean {
  if (status === 429 || status >= 500) return (details.retryAfterSeconds ?? 0) > 60;
  return true;
}

function withoutBody(response: Response): Response {
  response.body?.cancel().catch(() => {});
  return new Response(null, { status: response.status, headers: response.headers });
}
