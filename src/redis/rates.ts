/**
 * Sliding rates in Redis, for many nodes: one script a request, and one key an organization, under its hash tag. The key
 * is a hash: a queue of entries by number, oldest first, and their sums. One key, so that Redis, when it runs out of
 * memory, forgets all of it or nothing.
 *
 * Every call is sent at most once, and one that has no answer within its deadline has failed, whatever Redis still does
 * with it: then too much may be counted for a minute, never too little.
 */
import {
  countedSingly,
  hopelessLimit,
  minute_ms,
  type RateCount,
  type RateRequest,
  type Rates,
  readingsOf,
  refusalOf,
} from "../store/rates.ts";
import { within } from "../time/deadline.ts";
import type { RedisConnection } from "./connection.ts";

export interface RedisRatesOptions {
  /** An answer that takes longer is none. */
  answer_ms?: number;
  /** Before the organization's id in a key; tests of one Redis keep apart by it. */
  prefix?: string;
  /** In place of Redis's own clock, whole milliseconds. Its deadlines for forgetting still follow its own. */
  now_ms?: () => number;
}

/** Entries that a refusal looks at to find out when there is room; beyond them it tells the end of the last. */
const looked_at_max = 512;
/** An organization without requests is forgotten when its last entry has ended. */
const forget_ms = minute_ms + 2_000;

const entryPattern = "^(%d+) (%d+) (%d+) (.*)$";

const takeScript = `
local key, name, second_ms = KEYS[1], ARGV[1], tonumber(ARGV[2])
local tokens, tokens_min = tonumber(ARGV[3]), tonumber(ARGV[4])
local requests_limit, tokens_limit, now = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function whole(n) return string.format('%.0f', n) end
local state = redis.call('HMGET', key, 'requests', 'tokens', 'head', 'tail', 'end')
local requests_used, tokens_used = tonumber(state[1]) or 0, tonumber(state[2]) or 0
local head, tail, last_end = tonumber(state[3]) or 1, tonumber(state[4]) or 0, tonumber(state[5]) or now

-- Calls visit(number, end, requests, tokens) from the oldest on, until it answers true. What was given back has no field.
local function each(most, visit)
  local from, last, some = head, math.min(tail, head + most - 1), 2
  while from <= last do
    local numbers = {}
    for number = from, math.min(last, from + some - 1) do numbers[#numbers + 1] = number end
    for at, entry in ipairs(redis.call('HMGET', key, unpack(numbers))) do
      if entry then
        local ends, requests, used = string.match(entry, '${entryPattern}')
        if visit(numbers[at], tonumber(ends), tonumber(requests), tonumber(used)) then return end
      end
    end
    from, some = from + some, math.min(64, some * 2)
  end
end

local ended, first = {}, tail + 1
each(tail, function(number, ends, requests, used)
  if ends > now then
    first = number
    return true
  end
  requests_used, tokens_used = requests_used - requests, tokens_used - used
  ended[#ended + 1] = number
  if #ended == 64 then
    redis.call('HDEL', key, unpack(ended))
    ended = {}
  end
end)
if #ended > 0 then redis.call('HDEL', key, unpack(ended)) end
head = first

if tokens_limit then tokens = math.max(tokens_min, math.min(tokens, tokens_limit - tokens_used)) end
local requests_over = requests_limit and requests_used + 1 - requests_limit or 0
local tokens_over = tokens_limit and tokens_used + tokens - tokens_limit or 0
local taken = requests_over <= 0 and tokens_over <= 0
local requests_retry, tokens_retry = 0, 0

if taken then
  local from = now
  if second_ms > 0 then
    from = (math.floor(now / second_ms) + 1) * second_ms
    name = 'until ' .. whole(from)
  end
  local ends, requests, used = from + ${minute_ms}, 1, tokens
  local last = second_ms > 0 and tail >= head and redis.call('HGET', key, tail)
  local shared = last and { string.match(last, '${entryPattern}') }
  if shared and shared[4] == name then
    requests, used = requests + shared[2], used + shared[3]
  else
    tail = tail + 1
  end
  requests_used, tokens_used = requests_used + 1, tokens_used + tokens
  last_end = math.max(last_end, ends)
  redis.call('HSET', key, tail, whole(ends) .. ' ' .. whole(requests) .. ' ' .. whole(used) .. ' ' .. name)
  redis.call('PEXPIRE', key, ${forget_ms})
elseif tail > 0 then
  local requests_end, tokens_end = requests_over <= 0 and now, tokens_over <= 0 and now
  each(${looked_at_max}, function(number, ends, requests, used)
    requests_over, tokens_over = requests_over - requests, tokens_over - used
    if requests_over <= 0 then requests_end = requests_end or ends end
    if tokens_over <= 0 then tokens_end = tokens_end or ends end
    return requests_end and tokens_end
  end)
  requests_retry, tokens_retry = (requests_end or last_end) - now, (tokens_end or last_end) - now
end

-- A refusal saves what it pruned as well. Without a key there was nothing, and nothing is made.
if tail > 0 then
  redis.call('HSET', key, 'requests', whole(requests_used), 'tokens', whole(tokens_used),
    'head', head, 'tail', tail, 'end', whole(last_end))
end
return { taken and 1 or 0, requests_used, tokens_used, math.max(0, last_end - now), requests_retry, tokens_retry, tail, name, tokens }
`;

/** Of an entry that has ended, or that was forgotten, nothing changes. */
const changeScript = `
local key, number, name = KEYS[1], ARGV[1], ARGV[2]
local entry = redis.call('HGET', key, number)
if not entry then return 0 end
local ends, requests, tokens, found = string.match(entry, '${entryPattern}')
if found ~= name then return 0 end
local state = redis.call('HMGET', key, 'requests', 'tokens')
local function whole(n) return string.format('%.0f', n) end
local new_requests = math.max(0, requests + ARGV[3])
local new_tokens = new_requests == 0 and 0 or math.max(0, tokens + ARGV[4])
if new_requests == 0 then
  redis.call('HDEL', key, number)
else
  redis.call('HSET', key, number, ends .. ' ' .. whole(new_requests) .. ' ' .. whole(new_tokens) .. ' ' .. name)
end
redis.call('HSET', key, 'requests', whole(state[1] + new_requests - requests),
  'tokens', whole(state[2] + new_tokens - tokens))
return 1
`;

type TakeReply = [
  taken: number,
  requests: number,
  tokens: number,
  reset_ms: number,
  requestsRetry_ms: number,
  tokensRetry_ms: number,
  number: number,
  name: string,
  tokensTaken: number,
];

export function redisRates(redis: Pick<RedisConnection, "script">, options: RedisRatesOptions = {}): Rates {
  const { answer_ms = 100, prefix = "sluice:rates:" } = options;
  const take = redis.script("takeRate", takeScript);
  const change = redis.script("changeRate", changeScript);
  const keyOf = (organizationId: string) => `${prefix}{${organizationId}}`;

  return {
    async take(request: RateRequest) {
      const hopeless = hopelessLimit(request);
      if (hopeless) return { answer: "never", limit: hopeless };
      const { limits } = request;
      const key = keyOf(request.organizationId);
      const asked = take(key, [
        request.requestId,
        countedSingly(limits) ? "0" : "1000",
        String(request.tokens),
        String(request.tokens_min),
        String(limits.requestsPerMinute ?? ""),
        String(limits.tokensPerMinute ?? ""),
        String(options.now_ms?.() ?? ""),
      ]);
      const reply = (await within(asked, answer_ms, "Redis")) as TakeReply;
      const count: RateCount = {
        taken: reply[0] === 1,
        requests: reply[1],
        tokens: reply[2],
        reset_ms: reply[3],
        requestsRetry_ms: reply[4],
        tokensRetry_ms: reply[5],
      };
      if (!count.taken) return refusalOf(count, limits);
      const changed = async (requests: number, more: number) => {
        await change(key, [String(reply[6]), reply[7], String(requests), String(more)]).catch(() => {});
      };
      return {
        answer: "taken",
        readings: readingsOf(count, limits),
        giveBack: () => changed(-1, -reply[8]),
        correct: (actual) => changed(0, actual - reply[8]),
      };
    },
    async close() {},
  };
}
