/**
 * The frame around every request: one request id, one place where a fault becomes an answer, one line in the log.
 * Inside it, work is a straight line that returns a Response or throws a Fault.
 *
 * Refuses request heads that two parsers may read differently: a proxy in front of this service may have understood a
 * different request, and let that through.
 */
import { SlowRefusal } from "../auth/unknown-credentials.ts";
import type { UnreadBodies } from "../body/unread.ts";
import { asFault, Fault } from "../inference/fault.ts";
import { within } from "../time/cancellation.ts";
import { Present, type PresentEntry } from "../time/clock.ts";
import type { RequestTrace, Traces } from "../usage/traces.ts";
import type { Bounds } from "./bounds.ts";
import { Call, type ClientConnection } from "./call.ts";
import { callersWords } from "./call-notes.ts";
import { answerFault, type FaultForm } from "./fault-answer.ts";
import type { Log } from "./log.ts";
import type { Observer } from "./observer.ts";
import type { StreamedAnswer } from "./stream.ts";

/** Knows the open requests, and whether new ones are accepted: one owner of both, so that a drain misses no request. */
export interface Lifecycle {
  readonly draining: boolean;
  readonly openCount: number;
  readonly streamCount: number;
  /** Whether any request without a large body waits for the start of its answer. */
  smallWait(): boolean;
  enter(call: Call): PresentEntry<Call>;
  leave(place: PresentEntry<Call>): void;
  /** Marks the node as not ready. Requests that still arrive are served. */
  startDraining(): void;
  /**
   * Resolves when no request is open, or after `ms`. Requests that are still open then end with their protocol's error.
   */
  finish(ms: number): Promise<void>;
}

/** The time that streams get at the end of a drain to write their error and settle their charge. */
const farewell_ms = 2000;

export function lifecycle(): Lifecycle {
  const open = new Present<Call>();
  let draining = false;
  let emptied: (() => void) | null = null;

  async function empty(ms: number): Promise<void> {
    if (open.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    emptied = resolve;
    await within(promise, ms, "the last open request").catch(() => {});
  }

  return {
    get draining() {
      return draining;
    },
    get openCount() {
      return open.size;
    },
    get streamCount() {
      let streams = 0;
      for (const call of open.members()) if (call.isStreaming) streams += 1;
      return streams;
    },
    smallWait() {
      for (const call of open.members()) if (!call.isStreaming && !call.takesTurns) return true;
      return false;
    },
    enter: (call) => open.enter(call),
    leave(place) {
      open.leave(place);
      if (open.size === 0) emptied?.();
    },
    startDraining() {
      draining = true;
    },
    async finish(ms) {
      await empty(ms);
      if (open.size === 0) return;
      for (const call of open.members()) {
        call.end(
          new Fault("draining", "The service is restarting. Please send the request again.", { retryAfterSeconds: 1 }),
        );
      }
      await empty(farewell_ms);
    },
  };
}

export interface FrameDependencies {
  bounds: Pick<Bounds, "pressure" | "slowness" | "garbage">;
  unread: UnreadBodies;
  lifecycle: Lifecycle;
  /** The traces of requests; null if nothing is traced. */
  traces: Pick<Traces, "begin"> | null;
  /**
   * Whether this answer's connection should be closed, so that its client connects again to a worker that has fewer
   * connections.
   */
  shedsConnection(): boolean;
  metrics: Pick<Observer, "request">;
  log: Pick<Log, "request" | "event">;
  /** Returns a new UUIDv7 as 32 hex digits. */
  newId(): string;
}

/** An HTTP answer: complete, or a stream that continues after its head was sent. */
export type HttpAnswer = Response | StreamedAnswer;

export interface Framed extends FaultForm {
  /** The path of the matched route, such as `/v1/responses/{id}`, for logs and metrics. */
  path: string;
  /** Whether the request may be traced: probes are not. */
  isTraced?: boolean;
  /** Called with a fault before it is made into the answer. */
  failed?(call: Call, fault: Fault): void;
  work(call: Call): HttpAnswer | Promise<HttpAnswer>;
}

export type Serve = (request: Request, connection: ClientConnection) => Promise<Response>;

interface Open {
  call: Call;
  place: PresentEntry<Call>;
}

export function frame(dependencies: FrameDependencies, framed: Framed): Serve {
  return async (request, connection) => {
    const call = new Call(`req_${dependencies.newId()}`, request, framed.path, connection);
    const open: Open = { call, place: dependencies.lifecycle.enter(call) };
    if (framed.isTraced) call.traced(begunTrace(dependencies, call));
    let response: Response;
    let isSlow = false;
    try {
      try {
        refuseAmbiguous(request.headers);
        response = begun(dependencies, open, await framed.work(call));
      } finally {
        const ending = call.isStreaming ? undefined : call.finish();
        if (ending) await ending;
      }
    } catch (thrown) {
      isSlow = thrown instanceof SlowRefusal;
      response = refused(dependencies, call, reported(asFault(thrown), call, framed), framed);
    }
    if (!call.isStreaming) {
      const { pressure } = dependencies.bounds;
      const isWelcome =
        call.isBodyRead && !isSlow ? !pressure.descriptorsAreFew() : await becomesWelcome(dependencies, call, isSlow);
      if (!isWelcome) response.headers.set("connection", "close");
      call.answered();
      ended(dependencies, open, response.status);
    }
    // A node that stops closes connections with their answers, so that no answer is cut off. Workers that share a port
    // do the same to even out the number of their connections.
    if (dependencies.lifecycle.draining || dependencies.shedsConnection()) response.headers.set("connection", "close");
    for (const name in call.headers) response.headers.set(name, call.headers[name]!);
    // A HEAD request gets the same answer as a GET: the runtime leaves out the body, and sends the length that it would
    // have.
    return identified(response, call.requestId);
  };
}

/** The response of an answer. The work of a request has ended by then, unless the answer is a stream. */
function begun(dependencies: FrameDependencies, open: Open, answer: HttpAnswer): Response {
  if (answer instanceof Response) return answer;
  const { call } = open;
  const response = answer.open({ left: () => call.leave(), closed: (fault) => void closed(dependencies, open, fault) });
  call.streams();
  return response;
}

/** Ends the work of a stream that has ended or whose client has left, and then the request. */
async function closed(dependencies: FrameDependencies, open: Open, fault?: Fault): Promise<void> {
  const { call } = open;
  if (fault && !call.left) call.failed(fault);
  call.answered();
  try {
    await call.finish();
  } catch (cause) {
    dependencies.log.event("error", "unhandled", { request_id: call.requestId, cause: String(cause) });
  }
  ended(dependencies, open, 200);
}

/**
 * Ends every request: takes it off the list of open requests, and writes its metrics, its trace and its line in the
 * log.
 */
function ended({ lifecycle, bounds, metrics, log }: FrameDependencies, { call, place }: Open, status: number): void {
  lifecycle.leave(place);
  bounds.garbage.lived(call.elapsed_ms(), lifecycle.openCount);
  const endStatus = call.endStatus(status);
  const code = call.left ? undefined : call.notes.code;
  const traceId = call.trace?.sampledId;
  metrics.request({ route: call.route, status: endStatus, code, seconds: call.elapsed_ms() / 1000, traceId });
  call.trace?.end(endStatus, code);
  log.request(call, status);
}

/**
 * Whether the connection may serve another request: the body of this one was read, and the wait of a slow refusal is
 * over.
 */
async function becomesWelcome(
  { unread, bounds: { pressure, slowness } }: FrameDependencies,
  call: Call,
  isSlow: boolean,
): Promise<boolean> {
  const isRead = call.isBodyRead || (await unread.discard(call.request, call.client, call.signal));
  if (!isRead || pressure.descriptorsAreFew()) return false;
  if (!isSlow) return true;
  call.watchClient();
  return slowness.wait(call.signal);
}

/**
 * Reports the fault to `failed`, and returns the fault to answer with. An error in `failed` must not leave the request
 * open.
 */
function reported(fault: Fault, call: Call, { failed }: Framed): Fault {
  try {
    failed?.(call, fault);
    return fault;
  } catch (defect) {
    return asFault(defect);
  }
}

/**
 * Makes the answer of a fault. If making the form's headers throws, they are left out: the request must not stay open.
 */
function refused({ log }: FrameDependencies, call: Call, fault: Fault, form: FaultForm): Response {
  try {
    return answerFault(call, fault, form);
  } catch (cause) {
    log.event("error", "unhandled", { request_id: call.requestId, cause: String(cause) });
    return answerFault(call, fault, { faultBody: form.faultBody });
  }
}

function begunTrace({ traces }: FrameDependencies, { requestId, request, route }: Call): RequestTrace | null {
  if (traces === null) return null;
  const { method, headers } = request;
  return traces.begin({ id: requestId, method, route, headers, words: callersWords(headers) });
}

/**
 * Adds the headers that every answer has: the request's id under the names of each family of clients, and the header
 * that forbids clients to guess another media type (docs/design/service.md, Identifiers and headers).
 */
export function identified(response: Response, requestId: string): Response {
  response.headers.set("x-service-request-id", requestId);
  response.headers.set("x-request-id", requestId);
  response.headers.set("request-id", requestId);
  response.headers.set("x-content-type-options", "nosniff");
  return response;
}

/**
 * Throws 400 for a head that two parsers may read differently; the connection has to be closed after that. The
 * runtime's own parser refuses the other ambiguous heads.
 */
function refuseAmbiguous(headers: Headers): void {
  // Two fields of one name are joined by a comma, which no host contains.
  if (headers.get("host")?.includes(",")) throw ambiguous("has more than one Host header");
  const coding = headers.get("transfer-encoding");
  if (coding !== null && coding.toLowerCase() !== "chunked")
    throw ambiguous("has a Transfer-Encoding other than chunked");
}

function ambiguous(what: string): Fault {
  return new Fault("invalid_value", `The head of this request ${what}. Send it once, as HTTP/1.1 describes it.`, {
    headers: { connection: "close" },
  });
}
