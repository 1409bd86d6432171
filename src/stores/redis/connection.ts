/**
 * REDIS holds hints: everything in it can be rebuilt from Postgres, and nothing waits for it long. All keys of an
 * organization have one `{org}` hash tag, so that they work on a cluster as well as on one server. Any node of a
 * cluster may be named; the server is asked whether it belongs to a cluster. A server that does not report that, such
 * as a proxy, is recognised because it refuses keys of several tags.
 */
import { Cluster, Command, Redis, type RedisOptions, ReplyError } from "ioredis";
import { within } from "../../core/time/cancellation.ts";
import type { StoreWatcher } from "../../features/telemetry/store/watcher.ts";

export interface RedisConnection {
  /** Rejects unless Redis answers in time. A connection that is still being made is waited for. */
  ping(timeout_ms: number): Promise<void>;
  /** Whether the keys of one script may have different hash tags. */
  isOneServer(): boolean;
  /**
   * Runs a Lua script, on a cluster over keys with one hash tag. Rejects without waiting if Redis is known to be away.
   * `isGathered`: one call is all that its caller asks for at the moment, so it does not wait for others.
   */
  script(lua: string, how?: { isGathered: boolean }): RunScript;
  close(): void;
}

type RunScript = (keys: readonly string[], args: readonly string[]) => Promise<unknown>;

const connect_ms = 2000;
const command_ms = 2000;
const retry_ms_max = 2000;

/** A connection that waits for an answer and receives nothing for this long is dead, and is opened again. */
const silence_ms = 5000;

/** Certificates in PEM. Without them, the system's authorities are trusted, and no client certificate is sent. */
export interface RedisTls {
  ca?: string;
  cert?: string;
  key?: string;
}

/**
 * Connects in the background and retries for ever: a Redis that is away at the start is a warning, not a failure. `tls`
 * is called for each connection of a `rediss://` URL, so that a renewed certificate needs no restart.
 */
export function redisConnection(
  url: string,
  failed: (cause: unknown) => void,
  tls: () => RedisTls = () => ({}),
  watcher?: StoreWatcher,
): RedisConnection {
  const options = {
    ...(/^rediss:/i.test(url) ? { tls: askedAnew(tls) } : {}),
    connectTimeout: connect_ms,
    commandTimeout: command_ms,
    socketTimeout: silence_ms,
    // A command without an answer may have been carried out all the same, so each command is sent only once.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    // A server that became a replica keeps its connections. A new connection may lead to the server that took its place.
    reconnectOnError: ({ message }) => message.includes("READONLY"),
  } satisfies RedisOptions;
  const retryAfter_ms = (attempt: number) => Math.min(retry_ms_max, 50 * 2 ** attempt);
  const single = reporting(new Redis(url, { ...options, retryStrategy: retryAfter_ms }), failed);
  const watched = (client: Redis | Cluster) => {
    client.on("connect", () => watcher?.opened("redis"));
    client.on("close", () => closed || watcher?.lost("redis"));
  };
  const openCluster = () =>
    reporting(
      new Cluster([url], {
        clusterRetryStrategy: retryAfter_ms,
        clusterNodeRetryStrategy: retryAfter_ms,
        slotsRefreshTimeout: connect_ms,
        // A node that was lost may have carried out its commands, so they are not sent again.
        retryDelayOnFailover: 0,
        enableOfflineQueue: false,
        enableAutoPipelining: true,
        redisOptions: { ...credentialsOf(url), ...options },
      }),
      failed,
    );

  /** Null until the server has said whether it belongs to a cluster. */
  let commands: Redis | Cluster | null = null;
  let isSharded = false;
  let closed = false;
  watched(single);

  single.on("ready", async () => {
    if (commands) return;
    try {
      const isCluster = await belongsToCluster(single);
      if (closed || commands) return;
      commands = isCluster ? openCluster() : single;
      if (isCluster) {
        watched(commands);
        single.disconnect();
      }
    } catch {
      // A server that fails to answer INFO is asked again on a new connection.
      if (!closed) single.disconnect(true);
    }
  });

  const isReady = () => commands?.status === "ready";
  const isOneServer = () => commands === single && !isSharded;
  function ready(): Redis | Cluster {
    if (!isReady()) throw new Error("there is no connection to Redis");
    return commands!;
  }

  return {
    async ping(timeout_ms) {
      const end_ms = performance.now() + timeout_ms;
      while (!isReady() && !closed && performance.now() < end_ms) await Bun.sleep(10);
      await within(ready().ping(), end_ms - performance.now(), "Redis");
    },
    isOneServer,
    script(lua, { isGathered } = { isGathered: false }) {
      const sha = new Bun.CryptoHasher("sha1").update(lua).digest("hex");
      return async (keys, args) => {
        const client = ready();
        const asked_ms = performance.now();
        const tell = (failure: "connection" | "statement" | null) =>
          watcher?.answered("redis", performance.now() - asked_ms, failure);
        try {
          const isAlone = isGathered && isOneServer();
          const value = await evaluated(client, { lua, sha, isAlone }, keys, args);
          tell(null);
          return value;
        } catch (error) {
          isSharded ||= isRefusal(error, "CROSSSLOT");
          tell(error instanceof ReplyError ? "statement" : "connection");
          throw error;
        }
      };
    },
    close() {
      closed = true;
      single.disconnect();
      commands?.disconnect();
    },
  };
}

/** Whether the server belongs to a cluster. INFO is one of the commands that Redis calls dangerous, and some users lack. */
async function belongsToCluster(server: Redis): Promise<boolean> {
  try {
    return /^cluster_enabled:1/m.test(await server.info("cluster"));
  } catch (error) {
    if (!isRefusal(error, "NOPERM")) throw error;
    return server.cluster("INFO").then(
      () => true,
      (refusal: unknown) => !(refusal instanceof ReplyError) && Promise.reject(refusal),
    );
  }
}

/** Calls the script by its hash. A Redis that does not know the hash has done nothing, and is then sent the text. */
async function evaluated(
  client: Redis | Cluster,
  { lua, sha, isAlone }: { lua: string; sha: string; isAlone: boolean },
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  try {
    if (!isAlone) return await client.evalsha(sha, keys.length, ...keys, ...args);
    // A pipeline would wait for the end of this turn of the event loop and of the pipeline before.
    const command = new Command("evalsha", [sha, keys.length, ...keys, ...args], { replyEncoding: "utf8" });
    return await client.sendCommand(command);
  } catch (error) {
    if (!isRefusal(error, "NOSCRIPT")) throw error;
    return client.eval(lua, keys.length, ...keys, ...args);
  }
}

const isRefusal = (error: unknown, word: string) =>
  error instanceof ReplyError && (error as Error).message.startsWith(word);

/** Reports an outage once, and not at each attempt to connect. */
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

/**
 * ioredis copies the fields of this object whenever it connects. So each is a getter, which reads the current
 * certificates.
 */
function askedAnew(tls: () => RedisTls): RedisTls {
  const names = ["ca", "cert", "key"] as const;
  const present = names.filter((name) => tls()[name] !== undefined);
  const fields = present.map((name) => [name, { enumerable: true, get: () => tls()[name] }]);
  return Object.defineProperties({}, Object.fromEntries(fields));
}

/**
 * The credentials for every node of a cluster. A cluster has only one database, so a database number in the URL's path
 * has no meaning.
 */
function credentialsOf(url: string): Pick<RedisOptions, "username" | "password"> {
  const { username, password } = new URL(url);
  return {
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
  };
}
