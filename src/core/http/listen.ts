/** Listens for HTTP, or HTTPS with a certificate that can be replaced while connections and streams go on. */
import { handshakesOn } from "./handshakes.ts";
import { type Socket, socketHandlers } from "./socket.ts";

export interface Listening {
  url: string;
  /**
   * New connections get this certificate. Running requests continue with the old one, and idle connections are closed.
   * Throws, and changes nothing, if it cannot be used. Once connections are refused, it does nothing.
   */
  renew(identity: ServerIdentity): void;
  /** Resolves when connections are refused. Clients that had connected before are served; running requests continue. */
  refuse(): Promise<void>;
  /** Refuses new connections, and resolves when running requests have their answers. */
  stop(): Promise<void>;
  /** Stops at once: running requests are cut off. */
  breakOff(): Promise<void>;
}

/** Certificate and key, in PEM. */
interface ServerIdentity {
  certificate: string;
  key: string;
}

/** Above our own limit, so that a body that is too large gets our answer and not the runtime's bare 413. */
const runtime_body_bytes_max = 1024 * 1024 * 1024;

interface ListeningOptions {
  host: string;
  port: number;
  /**
   * The silence allowed on a connection that carries no request of ours yet, and the deadline of each head but the
   * first.
   */
  idle_ms: number;
  /** Whether other processes of this node listen on it too. */
  isShared?: boolean;
  /** The largest message of a WebSocket. */
  websocket_frame_bytes_max?: number;
}

/**
 * The ciphers of TLS 1.2 with a key for each connection that also authenticate what they encrypt. The runtime would
 * offer CBC with SHA-1 too. Those of TLS 1.3 are its own.
 */
const ciphers = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

/** An application of Elysia. It learns of its server, which its handlers ask for addresses of clients. */
interface App {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  server: Bun.Server<unknown> | null;
}

/** The time that a connected client has to send its request when a listener ends. */
const arrival_ms = 300;

/** `identity`: null for HTTP. A shared port is one on which other processes of this node listen too; it is not 0. */
export function listen(elysia: App, address: ListeningOptions, identity: ServerIdentity | null = null): Listening {
  const ended = new Set<Promise<void>>();
  const isOwn = identity !== null && !address.isShared;
  let server = serving(elysia, isOwn ? { ...address, port: freePort(address) } : address, identity);
  elysia.server = server;
  let refused: Promise<void> | null = null;
  /** Ends the listener that serves now. Resolves when its port is closed. */
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
    // The runtime keeps a listener's certificate for as long as the listener lives (docs/design/runtime.md, Bun as a
    // server).
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
    // Otherwise a port that is taken would be shared without a message. With a certificate, and among workers,
    // `freePort` has checked.
    reusePort: identity !== null || isShared === true,
    idleTimeout: seconds(idle_ms),
    maxRequestBodySize: runtime_body_bytes_max,
    fetch: (request) => elysia.fetch(withOrigin(request)),
    websocket: socketHandlers(websocket_frame_bytes_max),
    ...(identity ? { tls: { cert: identity.certificate, key: identity.key, ciphers } } : {}),
  }) as unknown as NonNullable<App["server"]>;
}

/**
 * Elysia looks for the path after as many characters as `http://` has. For a request without a Host (HTTP/1.0, as plain
 * probes of balancers send) the runtime gives a bare path: `/v1/models` would be `/models`, and `/anything/metrics` the
 * metrics. After `https://` it would take the host for the path. The Request object stays the same, because the runtime
 * knows its connection by it.
 */
function withOrigin(request: Request): Request {
  const { url } = request;
  if (url.startsWith("http:")) return request;
  const value = url.startsWith("/") ? `http://localhost${url}` : `http:${url.slice("https:".length)}`;
  return Object.defineProperty(request, "url", { value });
}

/** A time-out in the runtime's form. 0 would be no limit. */
export function seconds(ms: number): number {
  return Math.max(1, Math.round(ms / 1000));
}

/** A port that nobody uses. Throws if the requested one is taken. */
export function freePort({ host, port }: Pick<ListeningOptions, "host" | "port">): number {
  const probe = Bun.serve({ hostname: host, port, reusePort: false, fetch: () => new Response() });
  const free = probe.port!;
  void probe.stop(true);
  return free;
}

/** The address at which a person reaches a host that was bound to. */
function named(host: string): string {
  if (["127.0.0.1", "0.0.0.0", "::", "::1"].includes(host)) return "localhost";
  return host.includes(":") ? `[${host}]` : host;
}
