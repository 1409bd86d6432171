/**
 * Rates for warming up (docs/design/runtime.md, Warming up): the whole way to Redis and back, but Redis is only asked
 * for a PING. So no key is created, and every request has room.
 */
import type { Rates } from "../../core/store/rates.ts";
import type { RedisConnection } from "./connection.ts";
import { redisRates } from "./rates.ts";
import type { RatesAsked, TakeReply } from "./rates-script.ts";

/** A Redis that is away is not waited for: the node counts elsewhere meanwhile. */
const ping_ms = 100;

export function dryRunRates(redis: Pick<RedisConnection, "ping">): Rates {
  return redisRates({
    script: () => async (_, asked) => {
      await redis.ping(ping_ms).catch(() => {});
      const [, , takes] = JSON.parse(asked[0]!) as RatesAsked;
      const replies = takes.map(
        ([, , , subjects]): TakeReply => [1, 1, subjects.map(() => [1, 1, 60_000, 0, 0, 1, 0])],
      );
      return JSON.stringify(replies);
    },
  });
}
