/**
 * REDIS: hints and messages between nodes; whatever it says can be rebuilt from Postgres, and nothing waits for it long.
 * All keys of an organization will stand under one `{org}` hash tag, so that a cluster serves as well as one server.
 */
import { Redis } from "ioredis";

export interface RedisConnection {
  /** Rejects unless Redis answers in time. */
  ping(timeout_ms: number): Promise<void>;
  /** Best effort: resolves false where Redis was away. */
  publish(channel: string, message: string): Promise<boolean>;
  /** `onConnect` is called whenever listening begins anew: messages may have been missed. */
  subscribe(channel: string, onMessage: (message: string) => void, onConnect: () => void): Promise<void>;
  close(): void;
}

const connect_ms = 2000;
const command_ms = 2000;
const retry_ms_max = 2000;

/** Connects in the background and for ever: a Redis that is away at the start is a warning, not a failure. */
export function redisConnection(url: string, failed: (cause: unknown) => void): RedisConnection {
  const open = (offlineQueue: boolean) => {
    const client = new Redis(url, {
      connectTimeout: connect_ms,
      commandTimeout: command_ms,
      maxRetriesPerRequest: 1,
      enableOfflineQueue: offlineQueue,
      enableAutoPipelining: true,
      retryStrategy: (attempt) => Math.min(retry_ms_max, 50 * 2 ** attempt),
    });
    let reported = false;
    client.on("ready", () => {
      reported = false;
    });
    // One line for an outage, not one for each attempt.
    client.on("error", (cause) => {
      if (!reported) failed(cause);
      reported = true;
    });
    return client;
  };
  const commands = open(false);
  const subscriber = new Map<string, Redis>();

  return {
    async ping(timeout_ms) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no answer within ${timeout_ms} ms`)), timeout_ms);
      });
      try {
        await Promise.race([commands.ping(), late]);
      } finally {
        clearTimeout(timer);
      }
    },
    async publish(channel, message) {
      try {
        await commands.publish(channel, message);
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
    close() {
      commands.disconnect();
      for (const client of subscriber.values()) client.disconnect();
    },
  };
}
