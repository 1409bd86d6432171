/**
 * Listens for HTTP, or for HTTPS with a certificate that can be replaced while connections and streams go on. Also
 * knows the connection on which a request came.
 */

import { type Bounds, isLoopback } from "./bounds.ts";
import type { ClientConnection } from "./call.ts";
import { handshakesOn } from "./handshakes.ts";
import { type Socket, socketHandlers } from "./socket.ts";

export interface Listening {
  url: string;
  /**
   * Gives new connections this certificate. Running requests continue with the old one; idle connections are closed.
   * Throws and changes nothing if the certificate cannot be used. Does nothing once connections are refused.
   */
  renew(identity: ServerIdentity): void;
  /**
   * Refuses new connections, and resolves when that has begun. Clients that had connected before are served; running
   * requests continue.
   */
  refuse(): Promise<void>;
  /** Refuses new connections, and resolves when running requests have their answers. */
  stop(): Promise<void>;
  /** Stops at once: running requests are cut off. */
  breakOff(): Promise<void>;
}

interface ServerIdentity {
  certificate: string;
  key: string;
}

/**
 * The runtime's limit for bodies. It is above this service's own limit, so that a body that is too large gets this
 * service's answer and not the runtime's bare 413.
 */
const runtime_body_bytes_max = 1024 * 1024 * 1024;

interface ListeningOptions {
  host: string;
  port: number;
  /**
   * How long a connection may be silent before its first request, and how long the head of each further request may
   * take.
   */
  idle_ms: number;
  /** Whether other processes of this node listen on the port too. */
  isShared?: boolean;
  websocket_frame_bytes_max?: number;
}

/**
 * The ciphers of TLS 1.2 with forward secrecy and authenticated encryption. The runtime would offer CBC with SHA-1 too.
 * The ciphers of TLS 1.3 are the runtime's.
 */
const ciphers = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

/** An Elysia application. It is given its server, which its handlers ask for client addresses. */
interface App {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  server: Bun.Server<unknown> | null;
}

/** The time that a connected client gets to send its request after its listener has ended. */
const arrival_ms = 300;

/** Listens at the address. `identity`: null for HTTP. A shared port (`isShared`) must not be 0. */
export function listen(elysia: App, address: ListeningOptions, identity: ServerIdentity | null = null): Listening {
  const ended = new Set<Promise<void>>();
  const isOwn = identity !== null && !address.isShared;
  let server = serving(elysia, isOwn ? { ...address, port: freePort(address) } : address, identity);
  elysia.server = server;
  let refused: Promise<void> | null = null;
  /**
   * Prepares the end of the current listener. The returned function ends it, and its promise resolves when the port is
   * closed.
   */
  const ending = () => {
    const listener = server;
    const handshakes = handshakesOn(listener.port!);
    return () => {
      handshakes?.end();
      const allArrived = handshakes ? Bun.sleep(arrival_ms) : Promise.resolve();
      const stopped = allArrived.then(() => listener.stop()).then(() => void ended.delete(stopped));
      ended.add(stopped);
      return allArrived;
    };
  };
  const refuse = () => {
    refused ??= ending()();
    return refused;
  };
  const url = `${identity ? "https" : "http"}://${named(address.host)}:${server.port}`;
  return {
    url,
    // The runtime cannot change the certificate of a listener, so a new listener is begun (docs/design/runtime.md, Bun
    // as a server).
    renew(next) {
      if (refused) return;
      const endPredecessor = ending();
      server = serving(elysia, { ...address, port: server.port! }, next);
      elysia.server = server;
      void endPredecessor();
    },
    refuse,
    async stop() {
      await refuse();
      await Promise.all(ended);
    },
    breakOff: () => server.stop(true),
  };
}

function serving(elysia: App, options: ListeningOptions, identity: ServerIdentity | null) {
  const { host, port, idle_ms, isShared, websocket_frame_bytes_max = 0 } = options;
  return Bun.serve<Socket>({
    hostname: host,
    port,
    development: false,
    // If `reusePort` were left out, a port that is taken would be shared without an error. With a certificate, and
    // among workers, the port is shared, and `freePort` has checked it before.
    reusePort: identity !== null || isShared === true,
    idleTimeout: seconds(idle_ms),
    maxRequestBodySize: runtime_body_bytes_max,
    fetch: (request) => elysia.fetch(withOrigin(request)),
    websocket: socketHandlers(websocket_frame_bytes_max),
    ...(identity ? { tls: { cert: identity.certificate, key: identity.key, ciphers } } : {}),
  }) as unknown as NonNullable<App["server"]>;
}

/**
 * The request with a full URL. For a request without a Host (HTTP/1.0, as plain probes of balancers send) the runtime
 * gives a bare path, but Elysia looks for the path after the length of `http://`: `/v1/models` would become `/models`,
 * and `/anything/metrics` the metrics. The Request object stays the same, because the runtime knows its connection by
 * it.
 */
function withOrigin(request: Request): Request {
  const { url } = request;
  if (url.startsWith("http:")) return request;
  const value = url.startsWith("/") ? `http://localhost${url}` : `http:${url.slice("https:".length)}`;
  return Object.defineProperty(request, "url", { value });
}

/** A time-out in whole seconds, the runtime's unit; at least 1, because 0 would be no limit. */
function seconds(ms: number): number {
  return Math.max(1, Math.round(ms / 1000));
}

/** A free port: the requested one, or any if it is 0. Throws if it is taken. */
export function freePort({ host, port }: Pick<ListeningOptions, "host" | "port">): number {
  const probe = Bun.serve({ hostname: host, port, reusePort: false, fetch: () => new Response() });
  const free = probe.port!;
  void probe.stop(true);
  return free;
}

/** The host under which a person reaches a listener that was bound to `host`. */
function named(host: string): string {
  if (["127.0.0.1", "0.0.0.0", "::", "::1"].includes(host)) return "localhost";
  return host.includes(":") ? `[${host}]` : host;
}

/** The parts of a node that a request's connection needs: the finder of client addresses, and the idle timeout. */
export interface ConnectionDependencies {
  bounds: Pick<Bounds, "clientAddress">;
  limits: { idle_ms: number };
}

type Server = Pick<Bun.Server<unknown>, "requestIP" | "timeout" | "upgrade">;

export class RuntimeConnection implements ClientConnection {
  readonly #dependencies: ConnectionDependencies;
  readonly #request: Request;
  readonly #server: Server | null;

  constructor(dependencies: ConnectionDependencies, request: Request, server: Server | null) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#server = server;
  }

  address(): string {
    return this.#dependencies.bounds.clientAddress(this.#peer(), this.#request.headers);
  }

  isLocal(): boolean {
    return isLoopback(this.#peer());
  }

  keepOpen(isKept: boolean): void {
    this.#server?.timeout(this.#request, isKept ? 0 : seconds(this.#dependencies.limits.idle_ms));
  }

  upgrade(socket: Socket, requestId: string): boolean {
    const headers = { "x-service-request-id": requestId, "x-request-id": requestId };
    return this.#server?.upgrade(this.#request, { data: socket, headers }) ?? false;
  }

  #peer(): string {
    return this.#server?.requestIP(this.#request)?.address ?? "";
  }
}
