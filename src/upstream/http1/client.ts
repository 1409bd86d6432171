/**
 * An HTTP/1.1 client for engines, over sockets of our own. Whether a request may be sent again depends on whether its
 * connection was made or reused, and on how far it got; `fetch` tells neither:
 * docs/decisions/2026-11-22-upstream-client.md.
 */
import type { Signal } from "../../time/cancellation.ts";
import { repeating } from "../../time/repeating.ts";
import { turns } from "../../time/turns.ts";
import type { Connection, RequestBody } from "./connection.ts";
import { type DialedLine, dial, type Origin, type TlsSettings } from "./dial.ts";
import type { Reply } from "./exchange.ts";
import { ReadPauses } from "./read-pauses.ts";
import { receiveBuffers } from "./receive-buffer.ts";

/** The destination of requests, and the settings that apply to all of them. */
export interface Where {
  /** Absolute, http or https. */
  url: string;
  /** The address of the URL's host, if it is resolved already. Null: the name has no address. */
  address?: string | null | undefined;
  headers: Readonly<Record<string, string>>;
  /** The TLS settings; null: the system's authorities and no client certificate. */
  tls: TlsSettings | null;
}

/** The time that the request may take. */
interface Patience {
  connect_ms: number;
  signal: Signal;
}

export interface Post extends Patience {
  /** The headers of this request, beside those that every request gets. */
  headers: Readonly<Record<string, string>>;
  body: RequestBody;
  /** Whether the request gets a new connection. */
  isFresh: boolean;
  /** Called when there is a connection and the request is about to be sent. */
  connected(): void;
}

/** A request without a body. */
export type Get = Where & Patience;

export interface Endpoint {
  /**
   * Sends the request once, and never again. Throws ConnectFailed, ConnectionLost, MalformedResponse, or the signal's
   * reason.
   */
  post(post: Post): Promise<Reply>;
}

export interface Client {
  /** The endpoint of an owner. `where` is called the first time. */
  at(whose: object, where: () => Where): Endpoint;
  /** Sends on a new connection, to find out whether one can be made. Throws as `post` does. */
  get(get: Get): Promise<Reply>;
  /** Connections that lie idle. */
  idle(): number;
  /** Origins that are kept in memory. */
  origins(): number;
  close(): void;
}

/**
 * An idle connection is closed before most engines would close it, because a request that meets the closing is lost.
 */
const idle_ms_default = 30_000;
const idle_per_origin_max = 4096;

/** The interval at which idle connections are looked for. */
const sweep_ms = 1000;

const noPauses = { shortest_ms: 0, longest_ms: 0 };

/** The idle connections to one origin that may be shared. */
interface Pool {
  key: string;
  idle: Connection[];
  /** When a connection became idle last, or else when the pool was made. */
  used_ms: number;
  isKnown: boolean;
  /** The connections, each on a line of its own. */
  line: DialedLine;
}

export function client({ idle_ms = idle_ms_default, pauses = new ReadPauses(noPauses) } = {}): Client {
  const pools = new Map<string, Pool>();
  const endpoints = new WeakMap<object, Endpoint>();
  const boundReceiving = receiveBuffers();
  const ordered = turns();
  let isClosed = false;
  const sweeps = repeating(async () => sweep(), { every: Math.min(sweep_ms, idle_ms) });

  function sweep(): void {
    const now = performance.now();
    for (const pool of pools.values()) {
      for (const one of pool.idle.filter((each) => each.idleUntil_ms <= now)) one.close();
      if (pool.idle.length === 0 && pool.used_ms < now - idle_ms) forgetPool(pool);
    }
  }

  /**
   * Names change their addresses day after day, so a pool that nobody uses is dropped. It is made again when it is
   * needed.
   */
  function forgetPool(pool: Pool): void {
    pools.delete(pool.key);
    pool.isKnown = false;
  }

  /** Returns the pool in use. An earlier one may have been dropped while one of its connections was busy. */
  function inForce(pool: Pool): Pool {
    if (pool.isKnown) return pool;
    const known = pools.get(pool.key) ?? pool;
    known.isKnown = true;
    pools.set(pool.key, known);
    return known;
  }

  function originOf({ url: { protocol, hostname, port }, address, tls }: Omit<Where, "url"> & { url: URL }): Origin {
    const isSecure = protocol === "https:";
    return {
      host: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: port === "" ? (isSecure ? 443 : 80) : Number(port),
      ...(address === undefined ? {} : { address }),
      tls: isSecure ? (tls ?? { ca: null, certificate: null }) : null,
    };
  }

  function poolOf({ host, port, tls, address }: Origin): Pool {
    const key = `${host} ${port} ${tls && trustOf(tls)} ${address ?? ""}`;
    const pool: Pool = {
      key,
      idle: [],
      used_ms: performance.now(),
      isKnown: false,
      line: {
        boundReceiving,
        pauses,
        turns: ordered,
        freed: (free) => put(pool, free),
        closed: (gone) => forget(inForce(pool), gone),
      },
    };
    return inForce(pool);
  }

  function endpointAt(where: Where): Endpoint {
    const url = new URL(where.url);
    const origin = originOf({ ...where, url });
    // Joined here, it is one string; a concatenation would be flattened again for each request.
    const opening = ["POST ", openingOf(url), linesOf(where.headers)].join("");
    let pool = poolOf(origin);
    return {
      async post({ headers, body, isFresh, connected, connect_ms, signal }) {
        pool = inForce(pool);
        const connection = (isFresh ? undefined : taken(pool)) ?? (await dialled(origin, pool, { connect_ms, signal }));
        connected();
        const head = `${opening}${linesOf(headers)}content-length: ${bytesOf(body)}\r\n\r\n`;
        return await connection.ask(head, body, signal);
      },
    };
  }

  function put(of: Pool, connection: Connection): void {
    const pool = inForce(of);
    const { idle } = pool;
    // A second before the engine closes it.
    const kept_ms = Math.min(idle_ms, (connection.kept_ms ?? Number.POSITIVE_INFINITY) - 1000);
    if (isClosed || kept_ms <= 0 || idle.length >= idle_per_origin_max) {
      connection.close();
      return;
    }
    pool.used_ms = performance.now();
    connection.idleUntil_ms = pool.used_ms + kept_ms;
    idle.push(connection);
  }

  const dialled = (origin: Origin, { line }: Pool, { connect_ms, signal }: Patience) =>
    dial({ origin, connect_ms, signal, line });

  return {
    at(whose, where) {
      const known = endpoints.get(whose);
      if (known) return known;
      const endpoint = endpointAt(where());
      endpoints.set(whose, endpoint);
      return endpoint;
    },
    async get({ connect_ms, signal, ...where }) {
      const url = new URL(where.url);
      const origin = originOf({ ...where, url });
      const connection = await dialled(origin, poolOf(origin), { connect_ms, signal });
      return connection.ask(`GET ${openingOf(url)}${linesOf(where.headers)}connection: close\r\n\r\n`, "", signal);
    },
    origins: () => pools.size,
    idle: () => [...pools.values()].reduce((sum, { idle }) => sum + idle.length, 0),
    close() {
      isClosed = true;
      void sweeps.stop();
      pauses.stop();
      for (const { idle } of pools.values()) for (const one of [...idle]) one.close();
    },
  };
}

/** The connection that became idle last is used, so that the others grow old and are closed. */
function taken({ idle }: Pool): Connection | undefined {
  for (let last = idle.pop(); last; last = idle.pop()) if (last.isUsable) return last;
  return undefined;
}

function forget({ idle }: Pool, connection: Connection): void {
  const at = idle.indexOf(connection);
  if (at >= 0) idle.splice(at, 1);
}

/** Connections are shared only by endpoints with the same authorities and client certificate. */
function trustOf({ ca, certificate }: TlsSettings): string {
  return String(Bun.hash(JSON.stringify([ca, certificate])));
}

function bytesOf(body: RequestBody): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  return body.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** The request line after the method, and the host header. */
function openingOf({ pathname, search, host }: URL): string {
  return `${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n`;
}

function linesOf(headers: Where["headers"]): string {
  let lines = "";
  for (const name in headers) lines += `${name}: ${headers[name]}\r\n`;
  return lines;
}
