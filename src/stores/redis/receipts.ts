/**
 * The last receipts of the fleet, remembered outside the store: after the store was restored to an earlier state, a
 * node that starts finds out from them which receipts the store lacks. There is a list for each database. Redis may
 * lose the list, and then a start knows less.
 */
import type { ReceiptMemory } from "../../features/upkeep/store/lost.ts";
import type { RedisConnection } from "./connection.ts";

const remembered_max = 1_000;
/** The receipts are forgotten a week after the last one. */
const forget_s = 7 * 24 * 3_600;

const rememberScript = `
redis.call('LPUSH', KEYS[1], unpack(ARGV))
redis.call('LTRIM', KEYS[1], 0, ${remembered_max - 1})
redis.call('EXPIRE', KEYS[1], ${forget_s})`;
const recallScript = "return redis.call('LRANGE', KEYS[1], 0, -1)";

export function redisReceipts(redis: Pick<RedisConnection, "script">): ReceiptMemory {
  const push = redis.script(rememberScript);
  const range = redis.script(recallScript);
  return {
    async remember(ledgerId, confirmed) {
      const entries = confirmed
        .slice(-remembered_max)
        .map(({ requestId, organizationId, charged }) => JSON.stringify([requestId, organizationId, charged]));
      if (entries.length > 0) await push([keyOf(ledgerId)], entries);
    },
    async recall(ledgerId) {
      const entries = (await range([keyOf(ledgerId)], [])) as string[];
      return entries.map((entry) => {
        const [requestId, organizationId, charged] = JSON.parse(entry) as [string, string, number];
        return { requestId, organizationId, charged };
      });
    },
  };
}

const keyOf = (ledgerId: string) => `sluice:receipts:{${ledgerId}}`;
