/** Opens connections to engines: name resolution, TCP, TLS, and the check of the peer. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Socket, SocketHandler, TLSOptions } from "bun";
import { Countdown, type Signal } from "../../time/cancellation.ts";
import { isOwnAddress, isOwnName } from "./address.ts";
import { EngineConnection, type Owner } from "./connection.ts";
import { firstConnection, type SilentAddresses } from "./first-address.ts";

export interface Origin {
  host: string;
  port: number;
  /** The address of the host, if it was resolved before. Null: the name has no address. */
  address?: string | null;
  /** The TLS settings; null if the connection has no TLS. */
  tls: TlsSettings | null;
  silent: SilentAddresses;
}

/** The trusted authorities and the client certificate, each in PEM. Null: the system's authorities, and no certificate. */
export interface TlsSettings {
  ca: string | null;
  certificate: { cert: string; key: string } | null;
}

/** Thrown if the connection could not be made. Nothing was sent. */
export class ConnectFailed extends Error {
  override readonly name = "ConnectFailed";
  readonly isTimeout: boolean;

  constructor(cause: unknown, isTimeout = false) {
    super(isTimeout ? "the engine took too long to connect" : "the engine could not be reached", { cause });
    this.isTimeout = isTimeout;
  }
}

export interface Dialing {
  origin: Origin;
  /** The time for name resolution, TCP and TLS together. */
  connect_ms: number;
  signal: Signal;
  line: Owner;
}

/** Opens a connection. Throws ConnectFailed, or the signal's reason. */
export async function dial(dialing: Dialing): Promise<EngineConnection> {
  const { connect_ms, signal } = dialing;
  signal.throwIfAborted();
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => {});
  const countdown = new Countdown(() => over.reject(new ConnectFailed(null, true)));
  countdown.set(connect_ms);
  const listening = signal.listen(over.reject);
  let isGivenUp = false;
  const opening = opened(dialing, () => isGivenUp);
  try {
    return await Promise.race([opening, over.promise]);
  } catch (cause) {
    // If the connection is made after the failure, it is closed at once.
    isGivenUp = true;
    opening.then((late) => late.close()).catch(() => {});
    if (signal.aborted || cause instanceof ConnectFailed) throw cause;
    throw new ConnectFailed(cause);
  } finally {
    countdown.stop();
    listening.stop();
  }
}

async function opened({ origin, connect_ms, line }: Dialing, isGivenUp: () => boolean): Promise<EngineConnection> {
  const connect = (address: string) => connected(address, origin, line);
  return firstConnection(await addressesAt(origin), connect, { silent: origin.silent, connect_ms, isGivenUp });
}

async function addressesAt({ host, address }: Origin): Promise<string[]> {
  if (address === undefined) return addressesOf(host);
  if (address === null) throw new Error("no address of the engine's name is known");
  return addressesOf(host, async () => [address]);
}

type Resolve = (host: string) => Promise<string[]>;
const resolved: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/**
 * The addresses of a host. A name that does not stand for this machine must not resolve to this machine: otherwise the
 * owner of the name would decide which local service is called.
 */
export async function addressesOf(host: string, resolve: Resolve = resolved): Promise<string[]> {
  if (isIP(host)) return [host];
  const found = await resolve(host);
  if (isOwnName(host)) return found;
  const elsewhere = found.filter((address) => !isOwnAddress(address));
  if (elsewhere.length === 0) throw new Error("the name leads to this machine; write localhost or the address instead");
  return elsewhere;
}

function connected(address: string, origin: Origin, line: Owner): Promise<EngineConnection> {
  const { promise, resolve, reject } = Promise.withResolvers<EngineConnection>();
  Bun.connect<Peer>({
    hostname: address,
    port: origin.port,
    ...(origin.tls ? { tls: tlsOptions(origin.host, origin.tls) } : {}),
    socket: handlers,
    data: new Greeting(origin, line, resolve, reject),
  }).catch(reject);
  return promise;
}

/** The receiver of a socket's events: the connection, or until there is one, a Greeting. */
type Peer = EngineConnection | Greeting;

/** All sockets share these handlers, and differ in their data. */
const handlers: SocketHandler<Peer> = {
  open(socket) {
    if (socket.data instanceof Greeting) socket.data.opened(socket);
  },
  handshake(socket, isAuthorized, error) {
    if (socket.data instanceof Greeting)
      socket.data.shaken(socket, isAuthorized ? null : (error ?? new Error("TLS failed")));
  },
  data: ({ data }, bytes) => data.received(bytes),
  drain: ({ data }) => data.drained(),
  end: ({ data }) => data.ended(),
  close: ({ data }, cause) => data.closed(cause),
  error: ({ data }, cause) => data.closed(cause),
  connectError: ({ data }, cause) => data.closed(cause),
};

class Greeting {
  readonly #origin: Origin;
  readonly #line: Owner;
  readonly #ready: (connection: EngineConnection) => void;
  readonly #failed: (cause: unknown) => void;

  constructor(
    origin: Origin,
    line: Owner,
    ready: (connection: EngineConnection) => void,
    failed: (cause: unknown) => void,
  ) {
    this.#origin = origin;
    this.#line = line;
    this.#ready = ready;
    this.#failed = failed;
  }

  opened(socket: Socket<Peer>): void {
    socket.setNoDelay(true);
    if (!this.#origin.tls) this.#ready(new EngineConnection(socket, this.#line));
  }

  /** Called after the TLS handshake. Bun has also compared the certificate's name with the host. */
  shaken(socket: Socket<Peer>, failure: unknown): void {
    if (!this.#origin.tls) return;
    if (failure === null) {
      this.#ready(new EngineConnection(socket, this.#line));
      return;
    }
    this.#failed(failure);
    socket.terminate();
  }

  closed(cause: unknown): void {
    this.#failed(cause ?? new Error("the connection closed before it was ready"));
  }

  // These events mean nothing here, because no request has been sent.
  received(): void {}
  drained(): void {}
  ended(): void {}
}

function tlsOptions(host: string, { ca, certificate }: TlsSettings): TLSOptions {
  return {
    ...(isIP(host) ? {} : { serverName: host }),
    ...(ca === null ? {} : { ca }),
    ...certificate,
    rejectUnauthorized: true,
  };
}

interface Addressed {
  address?: string | null | undefined;
  tls: TlsSettings | null;
}

/** The origin of a URL. `tls`: its TLS settings; null: the system's authorities and no client certificate. */
export function originOf({ protocol, hostname, port }: URL, { address, tls }: Addressed): Origin {
  const isSecure = protocol === "https:";
  return {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: port === "" ? (isSecure ? 443 : 80) : Number(port),
    ...(address === undefined ? {} : { address }),
    tls: isSecure ? (tls ?? { ca: null, certificate: null }) : null,
    silent: new Map(),
  };
}

/**
 * The identity of an engine. It does not include the TLS settings: whichever authorities are trusted, it is the same
 * engine.
 */
export function engineAt({ host, port, address }: Origin): string {
  return `${host} ${port} ${address ?? ""}`;
}

/** The key of TLS settings: only endpoints with the same authorities and client certificate share connections. */
export function trustOf({ ca, certificate }: TlsSettings): string {
  return String(Bun.hash(JSON.stringify([ca, certificate])));
}
