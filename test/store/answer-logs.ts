// The stores that keep the logs of answers.

import { databaseLogs } from "../../src/postgres/answer-log.ts";
import { redisLogs } from "../../src/redis/answer-log.ts";
import { redisConnection } from "../../src/redis/connection.ts";
import type { AnswerLogs } from "../../src/store/answer-log.ts";
import { startRedisCluster } from "../harness/cluster.ts";
import { redisUrl } from "../harness/services.ts";
import { newHex, stores } from "./ledger-stores.ts";

export interface LogStore {
  logs: AnswerLogs;
  /** Another node's. */
  another: AnswerLogs;
  close(): Promise<void>;
}

export const logStores: Record<"redis" | "redis cluster" | "postgres" | "pglite", () => Promise<LogStore>> = {
  redis: async () => onRedis([await redisUrl()]),
  async "redis cluster"() {
    const cluster = await startRedisCluster();
    const store = await onRedis(cluster.urls);
    return {
      ...store,
      async close() {
        await store.close();
        await cluster.stop();
      },
    };
  },
  postgres: () => onDatabase("postgres"),
  pglite: () => onDatabase("pglite"),
};

async function onRedis(urls: string[]): Promise<LogStore> {
  const connections = [urls[0]!, urls.at(-1)!].map((url) => redisConnection(url, () => {}));
  await Promise.all(connections.map((connection) => connection.ping(10_000)));
  const options = { prefix: `test:${newHex()}:`, kept_ms: () => 60_000 };
  const [logs, another] = connections.map((connection) => redisLogs(connection, options));
  return {
    logs: logs!,
    another: another!,
    async close() {
      for (const connection of connections) connection.close();
    },
  };
}

async function onDatabase(kind: "postgres" | "pglite"): Promise<LogStore> {
  const store = await stores[kind]();
  return { logs: databaseLogs(store.db), another: databaseLogs(await store.another()), close: store.close };
}
