/** Opens connections to engines: names, TCP, TLS, and who is spoken to. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Socket, TLSOptions } from "bun";
import type { Signal } from "../../time/cancellation.ts";
import { isOwnAddress, isOwnName } from "./address.ts";
import { Connection, type Owner } from "./connection.ts";
import type { BoundReceiving } from "./receive-buffer.ts";

export interface Origin {
  host: string;
  port: number;
  /** Where the host is, if that is decided already. Null: nowhere that is known. */
  address?: string | null;
  /** Null: no TLS. */
  tls: TlsSettings | null;
}

/** What is trusted, and who we are, each in PEM; null: the system's authorities, and nobody. */
export interface TlsSettings {
  ca: string | null;
  certificate: { cert: string; key: string } | null;
}

/** No connection came about: nothing was sent. */
export class ConnectFailed extends Error {
  override readonly name = "ConnectFailed";
  readonly isTimeout: boolean;

  constructor(cause: unknown, isTimeout = false) {
    super(isTimeout ? "the engine took too long to connect" : "the engine could not be reached", { cause });
    this.isTimeout = isTimeout;
  }
}

export interface Dialing extends Owner {
  origin: Origin;
  /** For the name, TCP and TLS together. */
  connect_ms: number;
  signal: Signal;
  boundReceiving: BoundReceiving;
}

/** Throws ConnectFailed, or the signal's reason. */
export async function dial({ origin, connect_ms, signal, ...line }: Dialing): Promise<Connection> {
  signal.throwIfAborted();
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => {});
  const timer = setTimeout(() => over.reject(new ConnectFailed(null, true)), connect_ms);
  const listening = signal.listen(over.reject);
  let isGivenUp = false;
  const opening = opened(origin, line, () => isGivenUp);
  try {
    return await Promise.race([opening, over.promise]);
  } catch (cause) {
    // One that still comes about is closed at once.
    isGivenUp = true;
    opening.then((late) => late.close()).catch(() => {});
    if (signal.aborted || cause instanceof ConnectFailed) throw cause;
    throw new ConnectFailed(cause);
  } finally {
    clearTimeout(timer);
    listening.stop();
  }
}

type Line = Owner & Pick<Dialing, "boundReceiving">;

async function opened(origin: Origin, line: Line, isGivenUp: () => boolean): Promise<Connection> {
  const failures: unknown[] = [];
  for (const address of await addressesAt(origin)) {
    if (isGivenUp()) break;
    try {
      return await connected(address, origin, line);
    } catch (cause) {
      failures.push(cause);
    }
  }
  throw failures.length === 1 ? failures[0] : new AggregateError(failures, failures.map(String).join("; "));
}

async function addressesAt({ host, address }: Origin): Promise<string[]> {
  if (address === undefined) return addressesOf(host);
  if (address === null) throw new Error("no address of the engine's name is known");
  return addressesOf(host, async () => [address]);
}

type Resolve = (host: string) => Promise<string[]>;
const resolved: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** A name may not lead to this machine, unless it says so itself: whoever rules the name would rule what is asked here. */
export async function addressesOf(host: string, resolve: Resolve = resolved): Promise<string[]> {
  if (isIP(host)) return [host];
  const found = await resolve(host);
  if (isOwnName(host)) return found;
  const elsewhere = found.filter((address) => !isOwnAddress(address));
  if (elsewhere.length === 0) throw new Error("the name leads to this machine; write localhost or the address instead");
  return elsewhere;
}

function connected(
  address: string,
  { host, port, tls }: Origin,
  { boundReceiving, ...owner }: Line,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const ready = (socket: Socket<Connection | null>) => resolve(new Connection(socket, owner));
    Bun.connect<Connection | null>({
      hostname: address,
      port,
      ...(tls ? { tls: tlsOptions(host, tls) } : {}),
      socket: {
        open(socket) {
          socket.setNoDelay(true);
          boundReceiving(socket);
          if (!tls) ready(socket);
        },
        handshake(socket, isAuthorized, error) {
          if (!tls || socket.data) return;
          // Bun has compared the name, too.
          if (isAuthorized) return ready(socket);
          reject(error ?? new Error("TLS failed"));
          socket.terminate();
        },
        data: (socket, bytes) => socket.data?.received(bytes),
        drain: (socket) => socket.data?.drained(),
        end: (socket) => socket.data?.ended(),
        close(socket, cause) {
          if (socket.data) socket.data.closed(cause);
          else reject(cause ?? new Error("the connection closed before it was ready"));
        },
        error: (socket, cause) => socket.data?.closed(cause),
        connectError: (_, cause) => reject(cause),
      },
      data: null,
    }).catch(reject);
  });
}

function tlsOptions(host: string, { ca, certificate }: TlsSettings): TLSOptions {
  return {
    ...(isIP(host) ? {} : { serverName: host }),
    ...(ca === null ? {} : { ca }),
    ...certificate,
    rejectUnauthorized: true,
  };
}
