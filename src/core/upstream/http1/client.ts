/**
 * An HTTP/1.1 client for engines, over sockets of our own. Whether a request may be sent again depends on whether its
 * connection was made or reused, and on how far it got; `fetch` tells neither:
 * docs/design/runtime.md, Towards engines.
 */
import type { Signal } from "../../time/cancellation.ts";
import { repeating } from "../../time/repeating.ts";
import { turns } from "../../time/turns.ts";
import type { Connection, Owner, RequestBody } from "./connection.ts";
import { dial, type Origin, type TlsSettings } from "./dial.ts";
import type { Reply } from "./exchange.ts";
import { IdleConnections } from "./idle.ts";
import { ReadPauses } from "./read-pauses.ts";
import { socketCalls } from "./socket-calls.ts";

/** The requests that a connection may carry after its first one: those of the same organization, all, or none. */
export const reuses = ["organization", "any", "none"] as const;
export type Reuse = (typeof reuses)[number];

/** The destination of requests, and the settings that apply to all of them. */
export interface Where {
  /** Absolute, http or https. */
  url: string;
  /** The address of the URL's host, if it is resolved already. Null: the name has no address. */
  address?: string | null | undefined;
  headers: Readonly<Record<string, string>>;
  /** The TLS settings; null: the system's authorities and no client certificate. */
  tls: TlsSettings | null;
  /** `any` by default. */
  reuse?: Reuse;
  /** The operator's name of the engine, by which a stray answer is reported. */
  upstream?: string;
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
  /** The id of the organization whose request it is; null or absent if it is nobody's. */
  organization?: string | null;
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
  /** The endpoint of an owner with this path. `where` is called the first time. */
  at(whose: object, where: () => Where, path?: string): Endpoint;
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
/** The idle connections of one engine, those of all organizations together. The oldest is closed for one more. */
const idle_max_default = 4096;

/** How long the connections of an engine that has sent a stray answer are not reused. */
const distrust_ms_default = 3_600_000;

/** The interval at which idle connections are looked for. */
const sweep_ms = 1000;

const noPauses = { shortest_ms: 0, longest_ms: 0 };

/** An engine sent more than the answer to a request. */
export interface Stray {
  /** The operator's name of the engine. */
  upstream: string;
  /** Its address, if it is one of several. */
  replica: string | null;
  /** Whether its connections were reused until now. */
  isFirst: boolean;
}

export interface ClientSettings {
  idle_ms?: number;
  idle_max?: number;
  distrust_ms?: number;
  pauses?: ReadPauses;
  strayed?(stray: Stray): void;
}

/** The idle connections to one origin that may be shared. */
interface Pool {
  key: string;
  origin: Origin;
  reuse: Reuse;
  upstream: string;
  idle: IdleConnections;
  /** When a connection became idle last, or else when the pool was made. */
  used_ms: number;
  isKnown: boolean;
  /** The connections, each on a line of its own. */
  line: Owner;
}

export function client({
  idle_ms = idle_ms_default,
  idle_max = idle_max_default,
  distrust_ms = distrust_ms_default,
  pauses = new ReadPauses(noPauses),
  strayed,
}: ClientSettings = {}): Client {
  const pools = new Map<string, Pool>();
  /** The engines whose connections are not reused, and until when, on the clock of `performance`. */
  const distrusted = new Map<string, number>();
  const endpoints = new WeakMap<object, Map<string, Endpoint>>();
  const calls = socketCalls();
  const ordered = turns();
  let isClosed = false;
  const sweeps = repeating(async () => sweep(), { every: Math.min(sweep_ms, idle_ms) });

  function sweep(): void {
    const now = performance.now();
    for (const pool of pools.values()) {
      pool.idle.close(now);
      if (pool.idle.size === 0 && pool.used_ms < now - idle_ms) forgetPool(pool);
    }
    for (const [engine, until_ms] of distrusted) if (until_ms <= now) distrusted.delete(engine);
  }

  /** The engine may do it again, and nothing tells a stray answer from one to the next request. */
  function distrust({ origin, upstream }: Pool): void {
    const engine = engineAt(origin);
    const isFirst = !distrusted.has(engine);
    distrusted.set(engine, performance.now() + distrust_ms);
    for (const pool of pools.values()) if (engineAt(pool.origin) === engine) pool.idle.close();
    strayed?.({ upstream, replica: origin.address ?? null, isFirst });
  }

  function isDistrusted({ origin }: Pool): boolean {
    return distrusted.size > 0 && distrusted.has(engineAt(origin));
  }

  /** The callers that share connections with this organization; null: the connection carries no other request. */
  function sharerOf(pool: Pool, organization: string | null): string | null {
    if (pool.reuse === "none" || isDistrusted(pool)) return null;
    return pool.reuse === "any" ? anybody : organization;
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

  function poolOf(origin: Origin, { reuse = "any", upstream = "" }: Pick<Where, "reuse" | "upstream">): Pool {
    const pool: Pool = {
      key: `${engineAt(origin)} ${origin.tls && trustOf(origin.tls)} ${reuse}`,
      origin,
      reuse,
      upstream,
      idle: new IdleConnections(idle_max),
      used_ms: performance.now(),
      isKnown: false,
      line: {
        calls,
        pauses,
        turns: ordered,
        freed: (free) => put(pool, free),
        closed: (gone) => inForce(pool).idle.remove(gone),
        strayed: () => distrust(inForce(pool)),
      },
    };
    return inForce(pool);
  }

  function endpointAt(where: Where): Endpoint {
    const url = new URL(where.url);
    const origin = originOf({ ...where, url });
    // Joined here, each is one string; a concatenation would be flattened again for each request.
    const opening = ["POST ", openingOf(url), linesOf(where.headers)].join("");
    const openingOfLast = `${opening}connection: close\r\n`;
    let pool = poolOf(origin, where);
    return {
      async post({ headers, body, organization = null, isFresh, connected, connect_ms, signal }) {
        pool = inForce(pool);
        const sharer = sharerOf(pool, organization);
        const connection =
          (isFresh || sharer === null ? undefined : pool.idle.take(sharer)) ??
          (await dialled(origin, pool, { connect_ms, signal }));
        connection.sharer = sharer;
        connected();
        const beginning = sharer === null ? openingOfLast : opening;
        const head = `${beginning}${linesOf(headers)}content-length: ${bytesOf(body)}\r\n\r\n`;
        return await connection.ask(head, body, signal);
      },
    };
  }

  function put(of: Pool, connection: Connection): void {
    const pool = inForce(of);
    const { sharer } = connection;
    // A second before the engine closes it.
    const kept_ms = Math.min(idle_ms, (connection.kept_ms ?? Number.POSITIVE_INFINITY) - 1000);
    if (isClosed || kept_ms <= 0 || sharer === null || isDistrusted(pool)) {
      connection.close();
      return;
    }
    pool.used_ms = performance.now();
    connection.idleUntil_ms = pool.used_ms + kept_ms;
    pool.idle.add(sharer, connection);
  }

  const dialled = (origin: Origin, { line }: Pool, { connect_ms, signal }: Patience) =>
    dial({ origin, connect_ms, signal, line });

  return {
    at(whose, where, path = "") {
      const known = endpoints.get(whose);
      const ofPath = known?.get(path);
      if (ofPath) return ofPath;
      const endpoint = endpointAt(where());
      if (known) known.set(path, endpoint);
      else endpoints.set(whose, new Map([[path, endpoint]]));
      return endpoint;
    },
    async get({ connect_ms, signal, ...where }) {
      const url = new URL(where.url);
      const origin = originOf({ ...where, url });
      const connection = await dialled(origin, poolOf(origin, where), { connect_ms, signal });
      return connection.ask(`GET ${openingOf(url)}${linesOf(where.headers)}connection: close\r\n\r\n`, "", signal);
    },
    origins: () => pools.size,
    idle: () => [...pools.values()].reduce((sum, { idle }) => sum + idle.size, 0),
    close() {
      isClosed = true;
      void sweeps.stop();
      pauses.stop();
      for (const { idle } of pools.values()) idle.close();
    },
  };
}

/** The name for all callers, who share connections. */
const anybody = "";

/** One engine listens there, by whichever authorities it is trusted. */
function engineAt({ host, port, address }: Origin): string {
  return `${host} ${port} ${address ?? ""}`;
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
