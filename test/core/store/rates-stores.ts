// The stores that count sliding rates, each under a clock that a test sets, in milliseconds.

import type { RateLimits, RateSubject, Rates } from "../../../src/core/store/rates.ts";
import { memoryRates } from "../../../src/stores/memory/rates.ts";
import { redisRates } from "../../../src/stores/redis/rates.ts";
import { newHex } from "./ledger-stores.ts";
import { redisConnections, redisStores } from "./redis-stores.ts";

export const ofOrganization = (id: string, limits: RateLimits): RateSubject[] => [
  { limitedBy: "organization", id, limits },
];

export interface RateStore {
  rates: Rates;
  /** The rates as another node sees them; null if the store has only one node. */
  another: Rates | null;
  setClock(at_ms: number): Promise<void>;
  close(): Promise<void>;
}

export const rateStores: Record<"memory" | "redis" | "redis cluster", () => Promise<RateStore>> = {
  async memory() {
    let now_ms = 0;
    return {
      rates: memoryRates(() => now_ms),
      another: null,
      async setClock(at_ms) {
        now_ms = at_ms;
      },
      async close() {},
    };
  },
  ...redisStores(onRedis),
};

async function onRedis(urls: string[]): Promise<RateStore> {
  let now_ms = 0;
  const prefix = `test:${newHex()}:`;
  const connections = await redisConnections(urls);
  const [rates, another] = connections.map((connection) =>
    redisRates(connection, { prefix, now_ms: () => now_ms, answer_ms: 10_000, wait_ms: 2 }),
  );
  return {
    rates: rates!,
    another: another!,
    async setClock(at_ms) {
      now_ms = at_ms;
    },
    async close() {
      for (const connection of connections) connection.close();
    },
  };
}
