/**
 * An HTTP/1.1 client for engines, on sockets that it manages itself. Whether a request may be sent again depends on
 * whether its connection was made or reused, and on how far the request got; `fetch` reports neither:
 * docs/design/runtime.md, Towards engines.
 */
import type { Signal } from "../../time/cancellation.ts";
import { repeating } from "../../time/clock.ts";
import { turns } from "../../time/turns.ts";
import type { EngineConnection, Owner } from "./connection.ts";
import { dial, engineAt, type Origin, originOf, type TlsSettings, trustOf } from "./dial.ts";
import type { Reply } from "./exchange.ts";
import { bytesOf, linesOf, openingOf, type RequestBody } from "./head.ts";
import { IdleConnections } from "./idle.ts";
import { ReadPauses, socketCalls } from "./read-pauses.ts";

/**
 * Whose requests may follow the first one on a connection: those of the same organization, of any organization, or of
 * none.
 */
export const reuses = ["organization", "any", "none"] as const;
export type Reuse = (typeof reuses)[number];

/** The destination of requests, and the settings that apply to all of them. */
export interface Where {
  /** An absolute URL, http or https. */
  url: string;
  /** The address of the URL's host, if the host was resolved before. Null: the name has no address. */
  address?: string | null | undefined;
  headers: Readonly<Record<string, string>>;
  /** The TLS settings; null: the system's authorities and no client certificate. */
  tls: TlsSettings | null;
  /** Whose requests may reuse a connection; `any` by default. */
  reuse?: Reuse;
  /** The operator's name of the engine, which is reported with a stray answer. */
  upstream?: string;
}

interface Patience {
  connect_ms: number;
  signal: Signal;
}

export interface Post extends Patience {
  /** The headers of this request, added to those that every request gets. */
  headers: Readonly<Record<string, string>>;
  body: RequestBody;
  /** The id of the organization that sends the request; null or absent: no organization does. */
  organization?: string | null;
  /** Whether to use a new connection. */
  isFresh: boolean;
  /** Called when there is a connection and the request is about to be sent. */
  connected(): void;
}

export type Get = Where & Patience;

export interface Endpoint {
  /**
   * Sends the request once, and never again. Throws ConnectFailed, ConnectionLost, MalformedResponse, or the signal's
   * reason.
   */
  post(post: Post): Promise<Reply>;
}

export interface Client {
  /**
   * Returns the endpoint of the object `whose` and a path. The endpoint is made only once: `where` is called only the
   * first time.
   */
  at(whose: object, where: () => Where, path?: string): Endpoint;
  /** Sends a GET on a new connection, which shows that connections can be made. Throws as `post` does. */
  get(get: Get): Promise<Reply>;
  idle(): number;
  origins(): number;
  close(): void;
}

/**
 * How long idle connections are kept. Most engines would close them later than this. The client closes them first,
 * because a request that is sent just as the engine closes its connection is lost.
 */
const idle_ms_default = 30_000;
/** The most idle connections to one engine, over all organizations. Beyond this number, the oldest is closed. */
const idle_max_default = 4096;

/** How long the connections of an engine that has sent a stray answer are not reused. */
const distrust_ms_default = 3_600_000;

/** How often idle connections that are too old are looked for. */
const sweep_ms = 1000;

const noPauses = { shortest_ms: 0, longest_ms: 0 };

/** A stray answer: an engine sent more than the answer to a request. */
export interface Stray {
  /** The operator's name of the engine. */
  upstream: string;
  /** The engine's address, if the upstream has several. */
  replica: string | null;
  /** Whether this is the engine's first stray answer, so that its connections were reused until now. */
  isFirst: boolean;
}

export interface ClientSettings {
  idle_ms?: number;
  idle_max?: number;
  distrust_ms?: number;
  pauses?: ReadPauses;
  strayed?(stray: Stray): void;
}

interface Pool {
  key: string;
  origin: Origin;
  reuse: Reuse;
  upstream: string;
  idle: IdleConnections;
  /** When a connection last became idle; before that, when the pool was made. */
  used_ms: number;
  isKnown: boolean;
  /** The object to which the pool's connections report. */
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
  /**
   * The key is an engine whose connections are not reused; the value is the instant until which they are not, on the
   * clock of `performance`.
   */
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

  /**
   * Stops the reuse of an engine's connections: the engine may send a stray answer again, which looks like the answer
   * to the next request.
   */
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

  /**
   * The key of the group of callers that share connections with this organization; null: the connection carries no
   * other request.
   */
  function sharerOf(pool: Pool, organization: string | null): string | null {
    if (pool.reuse === "none" || isDistrusted(pool)) return null;
    return pool.reuse === "any" ? anybody : organization;
  }

  /**
   * Drops a pool that no request uses: host names change their addresses day after day, and unused pools would pile up.
   * The pool is made again when it is needed.
   */
  function forgetPool(pool: Pool): void {
    pools.delete(pool.key);
    pool.isKnown = false;
  }

  /** The current pool of the origin. The given pool may have been dropped while one of its connections was busy. */
  function inForce(pool: Pool): Pool {
    if (pool.isKnown) return pool;
    const known = pools.get(pool.key) ?? pool;
    known.isKnown = true;
    pools.set(pool.key, known);
    return known;
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
    const origin = originOf(url, where);
    // `join` makes a flat string once: a concatenation would be flattened again for each request.
    const opening = ["POST ", openingOf(url), linesOf(where.headers)].join("");
    const openingOfLast = `${opening}connection: close\r\n`;
    let pool = poolOf(origin, where);
    return {
      async post({ headers, body, organization = null, isFresh, connected, connect_ms, signal }) {
        // A connection that is taken from the pool and not used would stay open, and be in no pool.
        signal.throwIfAborted();
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

  function put(of: Pool, connection: EngineConnection): void {
    const pool = inForce(of);
    const { sharer } = connection;
    // How long the pool keeps the connection: at most until a second before the engine would close it.
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
      const origin = originOf(url, where);
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

/** The key of connections that all callers share. */
const anybody = "";
