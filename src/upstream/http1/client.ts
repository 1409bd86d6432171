/**
 * HTTP/1.1 to engines, over sockets of our own: whether a connection was made or reused, and how far it came, is what
 * decides if a request may be sent again, and `fetch` tells neither: docs/decisions/2026-11-22-upstream-client.md.
 */
import type { Signal } from "../../time/cancellation.ts";
import { together } from "../../time/together.ts";
import type { Connection, RequestBody } from "./connection.ts";
import { dial, type Origin, type TlsSettings } from "./dial.ts";
import type { Reply } from "./exchange.ts";
import { receiveBuffers } from "./receive-buffer.ts";

export interface Post {
  /** Absolute, http or https. */
  url: string;
  /** Where the URL's host is, if that is decided already. Null: nowhere that is known. */
  address?: string | null | undefined;
  headers: Readonly<Record<string, string>>;
  body: RequestBody;
  /** Of https; null: the system's authorities, no certificate of ours. */
  tls: TlsSettings | null;
  connect_ms: number;
  /** On a connection of its own. */
  isFresh: boolean;
  /** Told when a connection stands, and the request is on its way. */
  connected(): void;
  signal: Signal;
}

/** A request without a body. */
export type Get = Omit<Post, "body" | "isFresh" | "connected">;

export interface Client {
  /** Sends once, never again. Throws ConnectFailed, ConnectionLost, MalformedResponse, or the signal's reason. */
  post(post: Post): Promise<Reply>;
  /** The same, on a connection of its own: whether one can be made is what is asked. */
  get(get: Get): Promise<Reply>;
  /** Connections that lie idle. */
  idle(): number;
  /** Origins of which anything is remembered. */
  origins(): number;
  close(): void;
}

/** An idle connection is closed by us before most engines would, for a request that meets the closing is lost. */
const idle_ms_default = 30_000;
const idle_per_origin_max = 4096;
const destinations_max = 1024;

/** How often connections that have lain idle are looked for. */
const sweep_ms = 1000;

/** Where requests of one kind go, worked out once. */
interface Destination {
  origin: Origin;
  pool: Pool;
  /** The request line, with the fields that are always the same. */
  opening: string;
  /** The same of a request without a body. */
  getting: string;
}

/** The idle connections to one origin, as one party. */
interface Pool {
  key: string;
  idle: Connection[];
  /** When a connection came back, or else since when it is there. */
  used_ms: number;
  isKnown: boolean;
}

export function client({ idle_ms = idle_ms_default } = {}): Client {
  const pools = new Map<string, Pool>();
  const destinations = new Map<string, Destination>();
  const boundReceiving = receiveBuffers();
  const soon = together();
  let isClosed = false;
  const sweeper = setInterval(sweep, Math.min(sweep_ms, idle_ms));
  sweeper.unref();

  function sweep(): void {
    const now = performance.now();
    for (const pool of pools.values()) {
      for (const one of pool.idle.filter((each) => each.idleUntil_ms <= now)) one.close();
      if (pool.idle.length === 0 && pool.used_ms < now - idle_ms) forgetPool(pool);
    }
  }

  /** Names lead elsewhere, day after day: what nobody uses takes no room. It is made anew where somebody does. */
  function forgetPool(pool: Pool): void {
    pools.delete(pool.key);
    pool.isKnown = false;
    for (const [key, destination] of destinations) if (destination.pool === pool) destinations.delete(key);
  }

  /** That of before may have been forgotten while a connection of its was busy. */
  function inForce(pool: Pool): Pool {
    if (pool.isKnown) return pool;
    const known = pools.get(pool.key) ?? pool;
    known.isKnown = true;
    pools.set(pool.key, known);
    return known;
  }

  function destinationOf({ url, address, tls }: Pick<Post, "url" | "address" | "tls">): Destination {
    const where = address === undefined ? url : `${url} ${address}`;
    const key = tls ? `${where} ${trustOf(tls)}` : where;
    const known = destinations.get(key);
    if (known) return known;
    const destination = destinationTo(new URL(url), address, tls);
    // A reloaded configuration may name others, and a name may lead elsewhere; what is forgotten is worked out again.
    if (destinations.size >= destinations_max) destinations.clear();
    destinations.set(key, destination);
    return destination;
  }

  function destinationTo(url: URL, address: Post["address"], tls: TlsSettings | null): Destination {
    const isSecure = url.protocol === "https:";
    const origin: Origin = {
      host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: url.port === "" ? (isSecure ? 443 : 80) : Number(url.port),
      ...(address === undefined ? {} : { address }),
      tls: isSecure ? (tls ?? { ca: null, certificate: null }) : null,
    };
    const key = `${origin.host} ${origin.port} ${origin.tls && trustOf(origin.tls)} ${address ?? ""}`;
    const pool = inForce({ key, idle: [], used_ms: performance.now(), isKnown: false });
    const where = `${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n`;
    return { origin, pool, opening: `POST ${where}`, getting: `GET ${where}` };
  }

  function put(of: Pool, connection: Connection): void {
    const pool = inForce(of);
    const { idle } = pool;
    // A second before the engine would.
    const kept_ms = Math.min(idle_ms, (connection.kept_ms ?? Number.POSITIVE_INFINITY) - 1000);
    if (isClosed || kept_ms <= 0 || idle.length >= idle_per_origin_max) {
      connection.close();
      return;
    }
    pool.used_ms = performance.now();
    connection.idleUntil_ms = pool.used_ms + kept_ms;
    idle.push(connection);
  }

  const dialled = ({ origin, pool }: Destination, { connect_ms, signal }: Pick<Post, "connect_ms" | "signal">) =>
    dial({
      ...{ origin, connect_ms, signal, boundReceiving, soon },
      freed: (free) => put(pool, free),
      closed: (gone) => forget(inForce(pool), gone),
    });

  return {
    async get({ url, address, headers, tls, connect_ms, signal }) {
      const destination = destinationOf({ url, address, tls });
      const connection = await dialled(destination, { connect_ms, signal });
      return connection.ask(`${destination.getting}${linesOf(headers)}connection: close\r\n\r\n`, "", signal);
    },
    async post({ url, address, headers, body, tls, connect_ms, isFresh, connected, signal }) {
      const destination = destinationOf({ url, address, tls });
      const { pool, opening } = destination;
      const connection = (isFresh ? undefined : taken(pool)) ?? (await dialled(destination, { connect_ms, signal }));
      connected();
      return connection.ask(opening + fieldsOf(headers, bytesOf(body)), body, signal);
    },
    origins: () => pools.size,
    idle: () => [...pools.values()].reduce((sum, { idle }) => sum + idle.length, 0),
    close() {
      isClosed = true;
      clearInterval(sweeper);
      for (const { idle } of pools.values()) for (const one of [...idle]) one.close();
    },
  };
}

/** The last one that came back: the others grow old, and are closed. */
function taken({ idle }: Pool): Connection | undefined {
  for (let last = idle.pop(); last; last = idle.pop()) if (last.isUsable) return last;
  return undefined;
}

function forget({ idle }: Pool, connection: Connection): void {
  const at = idle.indexOf(connection);
  if (at >= 0) idle.splice(at, 1);
}

/** Connections are shared by those who trust the same, and are the same. */
function trustOf({ ca, certificate }: TlsSettings): string {
  return String(Bun.hash(JSON.stringify([ca, certificate])));
}

function fieldsOf(headers: Post["headers"], bytes: number): string {
  return `${linesOf(headers)}content-length: ${bytes}\r\n\r\n`;
}

function bytesOf(body: RequestBody): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  return body.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

function linesOf(headers: Post["headers"]): string {
  let lines = "";
  for (const name in headers) lines += `${name}: ${headers[name]}\r\n`;
  return lines;
}
