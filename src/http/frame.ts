/**
 * The frame around every request: one request id, one place where a fault becomes an answer, one line in the log. Inside
 * it, work is a straight line that returns a Response or throws a Fault.
 */
import { SlowRefusal } from "../auth/unknown-credentials.ts";
import type { UnreadBodies } from "../body/unread.ts";
import { asFault, Fault } from "../inference/fault.ts";
import type { RequestTrace, Traces } from "../telemetry/traces.ts";
import { refuseAmbiguous } from "./ambiguous.ts";
import type { Bounds } from "./bounds.ts";
import { Call, type Connection } from "./call.ts";
import { json } from "./json.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { callersWords } from "./log-line.ts";

/** The parts of a node that the frame needs. */
export interface FrameDependencies {
  bounds: Pick<Bounds, "pressure" | "slowness">;
  unread: UnreadBodies;
  lifecycle: Lifecycle;
  /** Null: nothing is traced. */
  traces: Pick<Traces, "begin"> | null;
  /** Whether this answer's connection should be made anew, since another worker has fewer. */
  letsGo(): boolean;
  /** A request has ended, its last byte written: logged, counted, no longer open. */
  closed(call: Call, status: number): void;
  /** 32 hex digits of a UUIDv7. */
  newId(): string;
}

export type FaultBody = (fault: Fault, requestId: string, request: Request) => unknown;

export interface Framed {
  /** The path as routed, for logs and metrics. */
  path: string;
  /** Whether it may be traced: probes are not. */
  isTraced?: boolean;
  faultBody: FaultBody;
  faultHeaders?(fault: Fault): Record<string, string>;
  /** Told of a fault before it becomes the answer. */
  failed?(call: Call, fault: Fault): void;
  work(call: Call): Response | Promise<Response>;
}

export type Serve = (request: Request, connection: Connection) => Promise<Response>;

export function frame(dependencies: FrameDependencies, framed: Framed): Serve {
  const { pressure, slowness } = dependencies.bounds;
  /** Whether the wait before a slow refusal was to its end. */
  const waited = (call: Call) => {
    call.watchClient();
    return slowness.wait(call.signal);
  };
  return async (request, connection) => {
    const call = new Call(`req_${dependencies.newId()}`, request, framed.path, connection);
    dependencies.lifecycle.enter(call);
    if (framed.isTraced) call.trace = begunTrace(dependencies, call);
    let response: Response;
    let isSlow = false;
    try {
      refuseAmbiguous(request.headers);
      response = await framed.work(call);
    } catch (thrown) {
      isSlow = thrown instanceof SlowRefusal;
      response = answerFault(call, toldOf(asFault(thrown), call, framed), framed);
    }
    if (!call.streaming) {
      const isRead = call.bodyIsRead || (await dependencies.unread.discard(request, call.client, call.signal));
      const isWelcome = isRead && !pressure.descriptorsAreFew() && (!isSlow || (await waited(call)));
      if (!isWelcome) response.headers.set("connection", "close");
      call.answered();
      dependencies.closed(call, response.status);
    }
    // So that no connection is left that the end of the node could cut, and that those who share a port have as many.
    if (dependencies.lifecycle.draining || dependencies.letsGo()) response.headers.set("connection", "close");
    // The answer to a HEAD too: the runtime leaves its body out, and says the length that GET's has.
    return identified(response, call.requestId);
  };
}

/** What the answer says: a defect in telling of a fault must not leave the request open. */
function toldOf(fault: Fault, call: Call, { failed }: Framed): Fault {
  try {
    failed?.(call, fault);
    return fault;
  } catch (defect) {
    return asFault(defect);
  }
}

function begunTrace({ traces }: FrameDependencies, { requestId, request, route }: Call): RequestTrace | null {
  if (traces === null) return null;
  const { method, headers } = request;
  return traces.begin({ id: requestId, method, route, headers, words: callersWords(headers) });
}

/**
 * Every answer names its request for each family of clients, and no browser may take it for another type than it says:
 * docs/design/service.md, Identifiers and headers.
 */
export function identified(response: Response, requestId: string): Response {
  response.headers.set("x-service-request-id", requestId);
  response.headers.set("x-request-id", requestId);
  response.headers.set("request-id", requestId);
  response.headers.set("x-content-type-options", "nosniff");
  return response;
}

/** `allow` names the methods that the path answers. */
export function methodNotAllowed(method: string, allow: string): Fault {
  const asked = method === "HEAD" ? "GET" : method;
  const named = /^[A-Z]{1,16}$/.test(asked) ? asked : "that method";
  return new Fault("method_not_allowed", `This path does not support ${named}. It supports ${allow}.`, {
    headers: { allow },
  });
}

function answerFault(call: Call, fault: Fault, { faultBody, faultHeaders }: Framed): Response {
  const { headers, retryAfterSeconds, cause } = fault.details;
  call.notes.code = fault.code;
  if (fault.status >= 500) call.notes.cause = cause ?? fault;
  return json(fault.status, faultBody(fault, call.requestId, call.request), {
    ...(isFinal(fault) ? { "x-should-retry": "false" } : {}),
    ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterSeconds)) }),
    ...headers,
    ...faultHeaders?.(fault),
  });
}

/** Whether the same request cannot succeed within a minute: clients that obey stop at once, instead of hammering. */
function isFinal({ status, details }: Fault): boolean {
  if (status === 429 || status >= 500) return (details.retryAfterSeconds ?? 0) > 60;
  return true;
}
