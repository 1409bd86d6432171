/**
 * REDIS: hints and messages between nodes; whatever it says can be rebuilt from Postgres, and nothing waits for it long.
 * All keys of an organization stand under one `{org}` hash tag, so that a cluster serves as well as one server: any node
 * of it may be named, and is asked whether it is one.
 */
import { Cluster, Redis, type RedisOptions } from "ioredis";

export interface RedisConnection {
  /** Rejects unless Redis answers in time. */
  ping(timeout_ms: number): Promise<void>;
  /** Best effort: resolves false where Redis was away. */
  publish(channel: string, message: string): Promise<boolean>;
  /** `onConnect` is called whenever listening begins anew: messages may have been missed. */
  subscribe(channel: string, onMessage: (message: string) => void, onConnect: () => void): Promise<void>;
  /** A Lua script over one key. It is sent at most once; rejects at once where Redis is known to be away. */
  script(lua: string): (key: string, args: string[]) => Promise<unknown>;
  close(): void;
}

const connect_ms = 2000;
const command_ms = 2000;
const retry_ms_max = 2000;
const publish_ms = 1000;

/** Nothing that came for so long on a connection that waits for an answer: it is dead, and opened anew. */
const silence_ms = 5000;

/** Connects in the background and for ever: a Redis that is away at the start is a warning, not a failure. */
export function redisConnection(url: string, failed: (cause: unknown) => void): RedisConnection {
  const options = {
    connectTimeout: connect_ms,
    commandTimeout: command_ms,
    socketTimeout: silence_ms,
    maxRetriesPerRequest: 0,
    // A command whose answer was lost may have been carried out.
    autoResendUnfulfilledCommands: false,
    enableAutoPipelining: true,
  } satisfies RedisOptions;
  const retryAfter_ms = (attempt: number) => Math.min(retry_ms_max, 50 * 2 ** attempt);
  const open = (offlineQueue: boolean) =>
    reporting(new Redis(url, { ...options, enableOfflineQueue: offlineQueue, retryStrategy: retryAfter_ms }), failed);
  const openCluster = () =>
    reporting(
      new Cluster([url], {
        clusterRetryStrategy: retryAfter_ms,
        clusterNodeRetryStrategy: retryAfter_ms,
        slotsRefreshTimeout: connect_ms,
        // A node that went away may have carried out what it was sent.
        retryDelayOnFailover: 0,
        enableOfflineQueue: false,
        enableAutoPipelining: true,
        redisOptions: { ...credentialsOf(url), ...options },
      }),
      failed,
    );

  const single = open(false);
  /** Null until the server has said whether it is one of a cluster. */
  let commands: Redis | Cluster | null = null;
  let closed = false;
  const subscriber = new Map<string, Redis>();

  single.on("ready", async () => {
    if (commands) return;
    try {
      const isCluster = /^cluster_enabled:1/m.test(await single.info("cluster"));
      if (closed || commands) return;
      commands = isCluster ? openCluster() : single;
      if (isCluster) single.disconnect();
    } catch {
      // A server that does not say so is asked again on a new connection.
      if (!closed) single.disconnect(true);
    }
  });

  function ready(): Redis | Cluster {
    if (commands?.status !== "ready") throw new Error("Redis is away");
    return commands;
  }

  /** The answer of a connection that may still be being made. */
  async function answer<T>(ask: (client: Redis | Cluster) => Promise<T>, timeout_ms: number): Promise<T> {
    const deadline_ms = performance.now() + timeout_ms;
    while (commands?.status !== "ready") {
      if (closed || performance.now() >= deadline_ms) throw new Error(`no connection within ${timeout_ms} ms`);
      await Bun.sleep(10);
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const left_ms = deadline_ms - performance.now();
      timer = setTimeout(() => reject(new Error(`no answer within ${timeout_ms} ms`)), left_ms);
    });
    try {
      return await Promise.race([ask(commands), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async ping(timeout_ms) {
      await answer((client) => client.ping(), timeout_ms);
    },
    async publish(channel, message) {
      try {
        await answer((client) => client.publish(channel, message), publish_ms);
        return true;
      } catch {
        return false;
      }
    },
    async subscribe(channel, onMessage, onConnect) {
      const client = open(true);
      subscriber.set(channel, client);
      client.on("message", (_, message) => onMessage(message));
      client.on("ready", () => onConnect());
      await client.subscribe(channel).catch(() => {});
    },
    script(lua) {
      const sha = new Bun.CryptoHasher("sha1").update(lua).digest("hex");
      return async (key, args) => {
        const client = ready();
        try {
          return await client.evalsha(sha, 1, key, ...args);
        } catch (error) {
          // It was not carried out: Redis does not have it yet, or any more.
          if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
          return client.eval(lua, 1, key, ...args);
        }
      };
    },
    close() {
      closed = true;
      single.disconnect();
      commands?.disconnect();
      for (const client of subscriber.values()) client.disconnect();
    },
  };
}

/** Says an outage once, not at each attempt. */
function reporting<Client extends Redis | Cluster>(client: Client, failed: (cause: unknown) => void): Client {
  let reported = false;
  client.on("ready", () => {
    reported = false;
  });
  client.on("error", (cause: unknown) => {
    if (!reported) failed(cause);
    reported = true;
  });
  return client;
}

/** What every node of a cluster is told; a cluster has one database, so a number in the path says nothing. */
function credentialsOf(url: string): RedisOptions {
  const { username, password, protocol } = new URL(url);
  return {
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(protocol === "rediss:" ? { tls: {} } : {}),
  };
}
