/**
 * Rates for warming up (docs/design/runtime.md, Warming up): all of the way to Redis and back, but what Redis is asked is
 * whether it is there. So no key is made, and every request has room.
 */
import type { Rates } from "../store/rates.ts";
import type { RedisConnection } from "./connection.ts";
import { redisRates } from "./rates.ts";
import type { RatesReply } from "./rates-script.ts";

/** One that is away is not waited for: the node counts elsewhere meanwhile. */
const ping_ms = 100;

export function dryRunRates(redis: Pick<RedisConnection, "ping">): Rates {
  return redisRates({
    script: () => async (keys) => {
      await redis.ping(ping_ms).catch(() => {});
      const subject = [1, 1, 60_000, 0, 0, 1, ""] as const;
      return [1, 1, ...keys.flatMap(() => subject)] satisfies RatesReply;
    },
  });
}
