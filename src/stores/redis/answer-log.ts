/**
 * Logs of answers in Redis: a stream for each. The id of an entry is its number plus one, so Redis itself refuses an
 * entry that comes too late. Redis may forget a stream as a whole; entries that are appended after that are refused.
 */
import type { AnswerLogs, Appended, LogName } from "../../features/responses/store/answer-log.ts";
import type { RedisConnection } from "./connection.ts";

/** The most entries that one read returns, so that no whole answer is in memory. */
const read_max = 64;

const appendScript = `
local key, place, text, ends = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
local count = last and tonumber(string.match(last[1], '^%d+')) or 0
if count > place then
  local same = redis.call('XRANGE', key, (place + 1) .. '-0', (place + 1) .. '-0')[1]
  if same and same[2][2] == text and same[2][4] == ends then return 'appended' end
  return last[2][4] == '1' and 'ended' or 'lost'
end
if last and last[2][4] == '1' then return 'ended' end
if count < place then return 'lost' end
redis.call('XADD', key, (place + 1) .. '-0', 'text', text, 'end', ends)
redis.call('PEXPIRE', key, ARGV[4])
return 'appended'`;
const readScript = "return redis.call('XRANGE', KEYS[1], ARGV[1] .. '-0', '+', 'COUNT', ARGV[2])";
const removeScript = "return redis.call('UNLINK', KEYS[1])";

type StreamEntry = [id: string, fields: [text: "text", text: string, end: "end", isEnd: "0" | "1"]];

interface RedisLogOptions {
  /** How long a log is kept after its last entry. */
  kept_ms(): number;
  /** The prefix of keys. Tests that share one Redis use different ones. */
  prefix?: string;
}

export function redisLogs(redis: Pick<RedisConnection, "script">, options: RedisLogOptions): AnswerLogs {
  const { kept_ms, prefix = "sluice:answer:" } = options;
  const append = redis.script(appendScript);
  const read = redis.script(readScript);
  const remove = redis.script(removeScript);
  const keysOf = ({ organizationId, requestId }: LogName) => [`${prefix}{${organizationId}}:${requestId}`];
  return {
    async append(log, number, { text, isEnd }) {
      return (await append(keysOf(log), [`${number}`, text, isEnd ? "1" : "0", `${kept_ms()}`])) as Appended;
    },
    async read(log, from) {
      const entries = (await read(keysOf(log), [`${from + 1}`, `${read_max}`])) as StreamEntry[];
      if (entries.some(([id], index) => id !== `${from + 1 + index}-0`)) return "lost";
      return entries.map(([, [, text, , end]]) => ({ text, isEnd: end === "1" }));
    },
    async remove(logs) {
      // The logs of a cluster are on different nodes, so each is removed by a call of its own.
      await Promise.all(logs.map((log) => remove(keysOf(log), [])));
    },
  };
}
