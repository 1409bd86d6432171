/**
 * The one script of sliding rates. It first applies changes to what earlier requests took. Then, for one request after
 * another, it takes the request's amounts from the limits of all its subjects or of none, or only reads. A subject's
 * hash is a queue of entries by number, oldest first, and their sums; each is loaded and saved once, however many
 * requests count in it.
 *
 * KEYS: those of the subjects, each once. ARGV[1]: a `RatesAsked` as JSON, which names a key by its position in KEYS,
 * from 1. Returns a `TakeReply` for each request, as JSON.
 */
import { minute_ms } from "../../core/store/rates.ts";

/**
 * The most entries that a refusal reads to find out when there is room. If they are not enough, it reports the end of
 * the last entry that it read.
 */
const looked_at_max = 512;
/** How long the key of a subject is kept after its last request: until its last entry has ended. */
const forget_ms = minute_ms + 2_000;

/** The argument of the script. `now_ms`: null for Redis's own time. */
export type RatesAsked = [now_ms: number | null, changes: ChangeAsked[], takes: TakeAsked[]];
export type ChangeAsked = [key: number, number: number, name: EntryName, requests: number, tokens: number];
/**
 * The name of an entry: that of its request, or for an entry that all requests of a second share, the end of that
 * second.
 */
export type EntryName = string | number;
/** The amounts that one request asks for. If `tokens` is null, the script only reads. */
export type TakeAsked = [name: string, tokens: number | null, tokens_min: number | null, subjects: SubjectAsked[]];
/**
 * The fields of a request about one of its subjects. `shared_ms`: requests within this many milliseconds share an entry; 0 if
 * each has its own.
 */
type SubjectAsked = [key: number, shared_ms: number, requests_max: number | null, tokens_max: number | null];

export type TakeReply = [taken: 0 | 1, tokens: number, subjects: SubjectReply[]];
export type SubjectReply = [
  requests: number,
  tokens: number,
  reset_ms: number,
  requestsRetry_ms: number,
  tokensRetry_ms: number,
  number: number,
  /** The end of the second whose requests share this entry; 0 if the entry is this request's alone. */
  until_ms: number,
];

export const ratesScript = `
local asked = cjson.decode(ARGV[1])
local changes, takes = asked[2], asked[3]

local function whole(n) return string.format('%d', n) end
local function shared_name(over) return 'until ' .. whole(over) end
local function known(value) return value ~= cjson.null and value or nil end

local function entry_of(text)
  if not text then return false end
  local ends, requests, tokens, name = string.match(text, '^(%d+) (%d+) (%d+) (.*)$')
  return { ends = tonumber(ends), requests = tonumber(requests), tokens = tonumber(tokens), name = name }
end

-- Loads a subject's hash once. The first load also reads the entries of these numbers.
local states = {}
local function load(place, numbers)
  local state = states[place]
  if state then return state end
  local key = KEYS[place]
  local found = redis.call('HMGET', key, 'requests', 'tokens', 'head', 'tail', 'end', unpack(numbers))
  -- The entries read so far, by number. False: the entry was given back, or has ended.
  local entries = {}
  for at, number in ipairs(numbers) do entries[number] = entry_of(found[5 + at]) end
  state = {
    key = key, requests = tonumber(found[1]) or 0, tokens = tonumber(found[2]) or 0,
    head = tonumber(found[3]) or 1, tail = tonumber(found[4]) or 0, ends = tonumber(found[5]) or 0,
    entries = entries, ahead = 1, written = {}, removed = {},
  }
  states[place] = state
  return state
end

local function look(state, numbers)
  local entries, unseen = state.entries, {}
  for _, number in ipairs(numbers) do
    if entries[number] == nil then unseen[#unseen + 1] = number end
  end
  local found = #unseen > 0 and redis.call('HMGET', state.key, unpack(unseen))
  for at, number in ipairs(unseen) do entries[number] = entry_of(found[at]) end
end

-- Reads an entry together with the next ones: four times as many at each read, up to 64.
local function entry_at(state, number)
  if state.entries[number] == nil then
    local numbers = {}
    for ahead = number, math.min(state.tail, number + state.ahead - 1) do numbers[#numbers + 1] = ahead end
    look(state, numbers)
    state.ahead = math.min(64, state.ahead * 4)
  end
  return state.entries[number]
end

-- Adds requests and tokens to an entry, and to the sums of its subject.
local function add(state, number, requests, tokens)
  local entry = state.entries[number]
  entry.requests, entry.tokens = entry.requests + requests, entry.tokens + tokens
  state.requests, state.tokens = state.requests + requests, state.tokens + tokens
  state.written[number] = true
end

local function remove(state, number)
  local entry = state.entries[number]
  state.requests, state.tokens = state.requests - entry.requests, state.tokens - entry.tokens
  state.entries[number], state.written[number] = false, nil
  state.removed[#state.removed + 1] = number
end

-- Applies the changes. A change of an entry that has ended, or that Redis has lost, has no effect.
local changed = {}
for _, change in ipairs(changes) do
  local numbers = changed[change[1]] or {}
  changed[change[1]] = numbers
  numbers[#numbers + 1] = change[2]
end
for place, numbers in pairs(changed) do load(place, numbers) end
for _, change in ipairs(changes) do
  local state, number, name = states[change[1]], change[2], change[3]
  local entry = state.entries[number]
  if entry and entry.name == (type(name) == 'number' and shared_name(name) or name) then
    local requests = math.max(-entry.requests, change[4])
    if entry.requests + requests == 0 then
      remove(state, number)
    else
      add(state, number, requests, math.max(-entry.tokens, change[5]))
    end
  end
end

local now = known(asked[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function pruned(place, shared_ms)
  local state = load(place, {})
  if state.sums then return state end
  if shared_ms > 0 and state.tail > state.head then look(state, { state.head, state.tail }) end
  while state.head <= state.tail do
    local entry = entry_at(state, state.head)
    if entry and entry.ends > now then break end
    if entry then remove(state, state.head) end
    state.head = state.head + 1
  end
  state.ends = math.max(state.ends, now)
  state.sums = { number = state.head - 1, ends = {}, requests = {}, tokens = {} }
  return state
end

-- Counts a request in an entry. Returns the end of the second of a shared entry; 0 if the entry is not shared.
local function enter(state, shared_ms, name, tokens)
  local from, over = now, 0
  if shared_ms > 0 then
    from = (math.floor(now / shared_ms) + 1) * shared_ms
    name, over = shared_name(from), from
  end
  local last = shared_ms > 0 and state.tail >= state.head and entry_at(state, state.tail)
  if not last or last.name ~= name then
    state.tail = state.tail + 1
    state.entries[state.tail] = { ends = from + ${minute_ms}, requests = 0, tokens = 0, name = name }
  end
  add(state, state.tail, 1, tokens)
  state.ends, state.is_used = math.max(state.ends, from + ${minute_ms}), true
  return over
end

-- Adds the next of the oldest entries to the running sums, which all refusals of a call share. The last entry may still
-- grow, so it is not added.
local function added_up(state)
  local sums = state.sums
  while sums.number < math.min(state.tail, state.head + ${looked_at_max}) - 1 do
    sums.number = sums.number + 1
    local entry, at = entry_at(state, sums.number), #sums.ends
    if entry then
      sums.ends[at + 1] = entry.ends
      sums.requests[at + 1] = (sums.requests[at] or 0) + entry.requests
      sums.tokens[at + 1] = (sums.tokens[at] or 0) + entry.tokens
      return true
    end
  end
end

-- Returns the milliseconds until 'over' requests, or tokens, have ended. 'kind': 'requests' or 'tokens'.
local function retry(state, kind, over)
  if over <= 0 then return 0 end
  local sums, low = state.sums[kind], 1
  while (sums[#sums] or 0) < over do
    if not added_up(state) then
      local last = state.sums.number + 1 == state.tail and entry_at(state, state.tail)
      return (last and (sums[#sums] or 0) + last[kind] >= over and last.ends or state.ends) - now
    end
  end
  local high = #sums
  while low < high do
    local middle = math.floor((low + high) / 2)
    if sums[middle] < over then low = middle + 1 else high = middle end
  end
  return state.sums.ends[low] - now
end

local function take(name, tokens, tokens_min, subjects)
  local taken = tokens ~= nil
  for _, subject in ipairs(subjects) do
    local state = pruned(subject[1], subject[2])
    subject.state, subject.requests_max, subject.tokens_max = state, known(subject[3]), known(subject[4])
    if tokens and subject.tokens_max then tokens = math.min(tokens, subject.tokens_max - state.tokens) end
  end
  if tokens then tokens = math.max(tokens_min, tokens) end
  for _, subject in ipairs(subjects) do
    local state = subject.state
    subject.requests_over = tokens and subject.requests_max and state.requests + 1 - subject.requests_max or 0
    subject.tokens_over = tokens and subject.tokens_max and state.tokens + tokens - subject.tokens_max or 0
    taken = taken and subject.requests_over <= 0 and subject.tokens_over <= 0
  end
  local found = {}
  for at, subject in ipairs(subjects) do
    local state, over, requests_retry, tokens_retry = subject.state, 0, 0, 0
    if taken then
      over = enter(state, subject[2], name, tokens)
    else
      requests_retry = retry(state, 'requests', subject.requests_over)
      tokens_retry = retry(state, 'tokens', subject.tokens_over)
    end
    found[at] = string.format('[%d,%d,%d,%d,%d,%d,%d]', state.requests, state.tokens,
      math.max(0, state.ends - now), requests_retry, tokens_retry, state.tail, over)
  end
  return string.format('[%d,%d,[%s]]', taken and 1 or 0, tokens or 0, table.concat(found, ','))
end

local replies = {}
for at, one in ipairs(takes) do replies[at] = take(one[1], known(one[2]), known(one[3]), one[4]) end

-- Saves the subjects. A key is created only for a request that was admitted. A refusal too saves which entries it
-- removed.
for _, state in pairs(states) do
  for from = 1, #state.removed, 64 do
    redis.call('HDEL', state.key, unpack(state.removed, from, math.min(#state.removed, from + 63)))
  end
  local fields = { 'requests', whole(state.requests), 'tokens', whole(state.tokens),
    'head', state.head, 'tail', state.tail, 'end', whole(state.ends) }
  for number in pairs(state.written) do
    local entry = state.entries[number]
    fields[#fields + 1] = number
    fields[#fields + 1] = string.format('%d %d %d %s', entry.ends, entry.requests, entry.tokens, entry.name)
  end
  if #fields > 10 or #state.removed > 0 then redis.call('HSET', state.key, unpack(fields)) end
  if state.is_used then redis.call('PEXPIRE', state.key, ${forget_ms}) end
end
return '[' .. table.concat(replies, ',') .. ']'
`;
