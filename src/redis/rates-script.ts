/**
 * The one script of sliding rates: first changes what was taken before, then takes, or reads, in all or in none of the
 * hashes that it is given. A hash is a queue of entries by number, oldest first, and their sums.
 *
 * KEYS: those of the subjects that the request counts in, then one for each change.
 * ARGV: how many subjects; the request's name; its tokens, '' to read alone; the least of them; the time, '' for Redis's
 * own; for each subject the milliseconds that share an entry (0: none do), its limit of requests and that of tokens; for
 * each change an entry's number and name, and the requests and tokens to add.
 */
import { minute_ms } from "../store/rates.ts";

/** Entries that a refusal looks at to find out when there is room; beyond them it tells the end of the last. */
const looked_at_max = 512;
/** A subject without requests is forgotten when its last entry has ended. */
const forget_ms = minute_ms + 2_000;

const entryPattern = "^(%d+) (%d+) (%d+) (.*)$";

export const ratesScript = `
local subjects = tonumber(ARGV[1])

local function whole(n) return string.format('%.0f', n) end

local states = {}
local function load(key)
  local state = states[key]
  if state then return state end
  local found = redis.call('HMGET', key, 'requests', 'tokens', 'head', 'tail', 'end')
  state = {
    key = key, requests = tonumber(found[1]) or 0, tokens = tonumber(found[2]) or 0,
    head = tonumber(found[3]) or 1, tail = tonumber(found[4]) or 0, ends = tonumber(found[5]) or 0,
  }
  states[key] = state
  return state
end

-- Without a key there was nothing, and nothing is made.
local function save(state)
  if state.tail == 0 then return end
  redis.call('HSET', state.key, 'requests', whole(state.requests), 'tokens', whole(state.tokens),
    'head', state.head, 'tail', state.tail, 'end', whole(state.ends))
end

-- Of an entry that has ended, or that was forgotten, nothing changes.
for at = 0, #KEYS - subjects - 1 do
  local key, place = KEYS[subjects + at + 1], 5 + subjects * 3 + at * 4
  local number, name = ARGV[place + 1], ARGV[place + 2]
  local entry = redis.call('HGET', key, number)
  local ends, requests, tokens, found
  if entry then ends, requests, tokens, found = string.match(entry, '${entryPattern}') end
  if found and found == name then
    local state = load(key)
    local new_requests = math.max(0, requests + ARGV[place + 3])
    local new_tokens = new_requests == 0 and 0 or math.max(0, tokens + ARGV[place + 4])
    if new_requests == 0 then
      redis.call('HDEL', key, number)
    else
      redis.call('HSET', key, number, ends .. ' ' .. whole(new_requests) .. ' ' .. whole(new_tokens) .. ' ' .. name)
    end
    state.requests, state.tokens = state.requests + new_requests - requests, state.tokens + new_tokens - tokens
  end
end
if subjects == 0 then
  for _, state in pairs(states) do save(state) end
  return {}
end

local name, tokens, tokens_min, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Calls visit(number, end, requests, tokens) from the oldest on, until it answers true. What was given back has no field.
local function each(state, most, visit)
  local from, last, some = state.head, math.min(state.tail, state.head + most - 1), 2
  while from <= last do
    local numbers = {}
    for number = from, math.min(last, from + some - 1) do numbers[#numbers + 1] = number end
    for at, entry in ipairs(redis.call('HMGET', state.key, unpack(numbers))) do
      if entry then
        local ends, requests, used = string.match(entry, '${entryPattern}')
        if visit(numbers[at], tonumber(ends), tonumber(requests), tonumber(used)) then return end
      end
    end
    from, some = from + some, math.min(64, some * 2)
  end
end

local function prune(state)
  local ended, first = {}, state.tail + 1
  each(state, state.tail, function(number, ends, requests, used)
    if ends > now then
      first = number
      return true
    end
    state.requests, state.tokens = state.requests - requests, state.tokens - used
    ended[#ended + 1] = number
    if #ended == 64 then
      redis.call('HDEL', state.key, unpack(ended))
      ended = {}
    end
  end)
  if #ended > 0 then redis.call('HDEL', state.key, unpack(ended)) end
  state.head, state.ends = first, math.max(state.ends, now)
end

local function enter(state, second_ms)
  local from, entry_name = now, name
  if second_ms > 0 then
    from = (math.floor(now / second_ms) + 1) * second_ms
    entry_name = 'until ' .. whole(from)
  end
  local ends, requests, used = from + ${minute_ms}, 1, tokens
  local last = second_ms > 0 and state.tail >= state.head and redis.call('HGET', state.key, state.tail)
  local shared = last and { string.match(last, '${entryPattern}') }
  if shared and shared[4] == entry_name then
    requests, used = requests + shared[2], used + shared[3]
  else
    state.tail = state.tail + 1
  end
  state.requests, state.tokens = state.requests + 1, state.tokens + tokens
  state.ends = math.max(state.ends, ends)
  redis.call('HSET', state.key, state.tail, whole(ends) .. ' ' .. whole(requests) .. ' ' .. whole(used) .. ' ' .. entry_name)
  return entry_name
end

local all, taken = {}, tokens ~= nil
for at = 1, subjects do
  local state = load(KEYS[at])
  prune(state)
  all[at] = state
  state.requests_limit, state.tokens_limit = tonumber(ARGV[4 + at * 3]), tonumber(ARGV[5 + at * 3])
  if tokens and state.tokens_limit then tokens = math.min(tokens, state.tokens_limit - state.tokens) end
end
if tokens then tokens = math.max(tokens_min, tokens) end
for _, state in ipairs(all) do
  state.requests_over = tokens and state.requests_limit and state.requests + 1 - state.requests_limit or 0
  state.tokens_over = tokens and state.tokens_limit and state.tokens + tokens - state.tokens_limit or 0
  taken = taken and state.requests_over <= 0 and state.tokens_over <= 0
end

local function retries(state)
  local requests_over, tokens_over = state.requests_over, state.tokens_over
  if requests_over <= 0 and tokens_over <= 0 or state.tail == 0 then return 0, 0 end
  local requests_end, tokens_end = requests_over <= 0 and now, tokens_over <= 0 and now
  each(state, ${looked_at_max}, function(number, ends, requests, used)
    requests_over, tokens_over = requests_over - requests, tokens_over - used
    if requests_over <= 0 then requests_end = requests_end or ends end
    if tokens_over <= 0 then tokens_end = tokens_end or ends end
    return requests_end and tokens_end
  end)
  return (requests_end or state.ends) - now, (tokens_end or state.ends) - now
end

local reply = { taken and 1 or 0, tokens or 0 }
for at, state in ipairs(all) do
  local entry_name, requests_retry, tokens_retry = '', 0, 0
  if taken then
    entry_name = enter(state, tonumber(ARGV[3 + at * 3]))
    redis.call('PEXPIRE', state.key, ${forget_ms})
  else
    requests_retry, tokens_retry = retries(state)
  end
  for _, value in ipairs({
    state.requests, state.tokens, math.max(0, state.ends - now), requests_retry, tokens_retry, state.tail, entry_name,
  }) do reply[#reply + 1] = value end
end
-- A refusal saves what it pruned as well.
for _, state in pairs(states) do save(state) end
return reply
`;

/** What it answers: these, and of each subject those below. Of changes alone nothing. */
export type RatesReply = [taken: number, tokens: number, ...SubjectReply[number][]];
type SubjectReply = [
  requests: number,
  tokens: number,
  reset_ms: number,
  requestsRetry_ms: number,
  tokensRetry_ms: number,
  number: number,
  name: string,
];

/** Of the subject at this place. */
export function subjectReply([, , ...reply]: RatesReply, place: number): SubjectReply {
  return reply.slice(place * 7, place * 7 + 7) as SubjectReply;
}
