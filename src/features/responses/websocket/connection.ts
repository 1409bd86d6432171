/**
 * A client's WebSocket on /v1/responses. Each message is served as a request of its own, by the code that serves all
 * requests (core/http/frame.ts); its answer, a stream or a refusal, is sent as messages.
 */
import type { Standing } from "../../../core/auth/standing.ts";
import type { Principal } from "../../../core/auth/verdict.ts";
import type { Call, ClientConnection } from "../../../core/http/call.ts";
import { type CloseReason, closeReasons, type Socket, type SocketOwner } from "../../../core/http/socket.ts";
import type { Retiring } from "../../../core/http/sockets.ts";
import { Fault } from "../../../core/inference/fault.ts";
import { path } from "../../../core/operations/responses.ts";
import { serveOperation } from "../../../core/operations/serve-operation.ts";
import { encodeFault } from "../../../core/protocol/openai-responses/fault.ts";
import type { ResponsesDependencies } from "../dependencies.ts";
import { Create, type SocketState } from "./create.ts";
import { Lanes } from "./lanes.ts";
import { Recent } from "./recent.ts";
import { errorEvent, relay } from "./server-event.ts";

export const connectionLimits = {
  /** The most lanes (lanes.ts), which run side by side. */
  lanes_max: 16,
  /** The most messages that may wait for their complete answers. A client that sends more is cut off. */
  unanswered_max: 64,
  age_ms: 60 * 60_000,
};

/** Why a connection takes no further message: the error, and the reason for its close. */
interface Retirement {
  fault: Fault;
  reason: CloseReason;
}

export class ResponsesConnection implements SocketOwner, Retiring {
  readonly #dependencies: ResponsesDependencies;
  readonly #principal: Principal;
  readonly #limits: typeof connectionLimits;
  readonly #state: SocketState;
  /** The headers of each request: those of the upgrade, without those that concern only the connection. */
  readonly #headers: Headers;
  readonly #connection: ClientConnection;
  readonly #running = new Set<AbortController>();
  #socket: Socket | null = null;
  #place: Disposable | null = null;
  #standing: Standing | null = null;
  #aging: ReturnType<typeof setTimeout> | undefined;
  #joined: Promise<void> = Promise.resolve();
  #retirement: Retirement | null = null;

  constructor(dependencies: ResponsesDependencies, call: Call, principal: Principal, limits = connectionLimits) {
    const { lanes_max } = limits;
    const { memory, sockets } = dependencies.bounds;
    this.#dependencies = dependencies;
    this.#principal = principal;
    this.#limits = limits;
    const bounds = { bytes_max: sockets.limits.frame_bytes_max, lanes_max };
    const recent = new Recent(memory.reservation(principal.key.id), bounds);
    this.#state = { lanes: new Lanes(lanes_max), recent };
    this.#headers = headOf(call.request.headers);
    const isLocal = call.connection.isLocal();
    this.#connection = { address: () => call.client, isLocal: () => isLocal, keepOpen() {} };
  }

  /** Counts the socket. False if there are too many. */
  enter(): boolean {
    this.#place = this.#dependencies.bounds.sockets.enter(this.#principal.key.id, this);
    return this.#place !== null;
  }

  opened(socket: Socket): void {
    this.#socket = socket;
    this.#standing = this.#dependencies.standings.begin(this.#principal, (fault) =>
      socket.end(closeReasons.refused, this.#refusal(fault)),
    );
    this.#aging = setTimeout(() => this.#retire({ fault: tooOld(), reason: closeReasons.old }), this.#limits.age_ms);
  }

  received(text: string): void {
    if (this.#running.size >= this.#limits.unanswered_max) this.#socket?.end(closeReasons.flooded);
    else if (this.#retirement) void this.#socket?.send(this.#refusal(this.#retirement.fault));
    else void this.#serve(text);
  }

  retire(): void {
    this.#retire({ fault: restarting(), reason: closeReasons.restarting });
  }

  /** Called when the socket is gone, or was never opened. */
  closed(): void {
    clearTimeout(this.#aging);
    this.#standing?.[Symbol.dispose]();
    this.#place?.[Symbol.dispose]();
    this.#state.recent[Symbol.dispose]();
    for (const running of this.#running) running.abort();
  }

  async #serve(text: string): Promise<void> {
    const socket = this.#socket!;
    const leaving = new AbortController();
    this.#running.add(leaving);
    try {
      using create = new Create(this.#state, this.#joined);
      this.#joined = create.joined;
      const request = requestOf(text, this.#headers, leaving.signal);
      const response = await serveOperation(this.#dependencies, create.operation())(request, this.#connection);
      await relay(response, create, socket);
      if (response.status === 401) socket.end(closeReasons.refused);
    } catch (cause) {
      this.#dependencies.log.event("error", "unhandled", { cause: String(cause) });
      socket.end({ code: 1011, reason: "The service failed to handle this message." });
    } finally {
      this.#running.delete(leaving);
      this.#closeIfDone();
    }
  }

  #retire(retirement: Retirement): void {
    this.#retirement ??= retirement;
    this.#closeIfDone();
  }

  #closeIfDone(): void {
    if (!this.#retirement || this.#running.size > 0) return;
    const { fault, reason } = this.#retirement;
    this.#socket?.end(reason, fault.code === "draining" ? undefined : this.#refusal(fault));
  }

  #refusal(fault: Fault): string {
    const { error } = encodeFault(fault, `req_${this.#dependencies.newId()}`);
    return errorEvent({ status: fault.status, error: { ...error } });
  }
}

function tooOld(): Fault {
  return new Fault(
    "websocket_connection_limit_reached",
    "This connection has reached its age of 60 minutes. Connect again to continue.",
  );
}

function restarting(): Fault {
  return new Fault("draining", "The service is restarting. Connect again, and send the request again.", {
    retryAfterSeconds: 1,
  });
}

/**
 * Headers that concern the connection and not its requests; and the idempotency key, because several requests cannot
 * have one key.
 */
const ofConnection = /^(connection|upgrade|sec-websocket-.*|content-.*|transfer-encoding|expect|idempotency-key)$/;

function headOf(upgrade: Headers): Headers {
  const headers = new Headers();
  for (const [name, value] of upgrade) if (!ofConnection.test(name)) headers.append(name, value);
  headers.set("content-type", "application/json");
  return headers;
}

function requestOf(text: string, head: Headers, signal: AbortSignal): Request {
  const headers = new Headers(head);
  headers.set("content-length", String(Buffer.byteLength(text)));
  return new Request(`http://localhost${path}`, { method: "POST", headers, body: text, signal });
}
