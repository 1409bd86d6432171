/** Stores on Redis, for tests of the data that two nodes share in it. */
import { redisConnection } from "../../../src/stores/redis/connection.ts";
import { startRedisCluster } from "../../harness/cluster.ts";
import { redisUrl } from "../../harness/services.ts";

/** The connections of two nodes. */
export async function redisConnections(urls: string[]) {
  const connections = [urls[0]!, urls.at(-1)!].map((url) => redisConnection(url, () => {}));
  await Promise.all(connections.map((connection) => connection.ping(10_000)));
  return connections;
}

/** Openers of the store that `open` makes: on one server, and on a cluster that stops when the store is closed. */
export function redisStores<Opened extends { close(): Promise<void> }>(open: (urls: string[]) => Promise<Opened>) {
  return {
    redis: async () => open([await redisUrl()]),
    async "redis cluster"() {
      const cluster = await startRedisCluster();
      const store = await open(cluster.urls);
      return {
        ...store,
        async close() {
          await store.close();
          await cluster.stop();
        },
      };
    },
  };
}
