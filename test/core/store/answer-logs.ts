// Openers of the stores that keep answer logs (stored texts of answers).

import type { AnswerLogs } from "../../../src/features/responses/store/answer-log.ts";
import { databaseLogs } from "../../../src/stores/postgres/answer-log.ts";
import { redisLogs } from "../../../src/stores/redis/answer-log.ts";
import { newHex, stores } from "./ledger-stores.ts";
import { redisConnections, redisStores } from "./redis-stores.ts";

export interface LogStore {
  logs: AnswerLogs;
  /** The same logs as another node sees them. */
  another: AnswerLogs;
  close(): Promise<void>;
}

export const logStores: Record<"redis" | "redis cluster" | "postgres" | "pglite", () => Promise<LogStore>> = {
  ...redisStores(onRedis),
  postgres: () => onDatabase("postgres"),
  pglite: () => onDatabase("pglite"),
};

async function onRedis(urls: string[]): Promise<LogStore> {
  const connections = await redisConnections(urls);
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
