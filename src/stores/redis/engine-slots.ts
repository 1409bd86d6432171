/**
 * Limits of engines in Redis, for many nodes. One hash for each engine has a field for each process, with the slots
 * that it holds and until when. One script performs an exchange, in which a process reports the slots that it holds and
 * wants, and is given its slots. The sum of held slots never rises above the limit: the script gives only slots that
 * are free, takes none from a process that renews, and trusts each process's report of what it holds.
 */
import { type EngineSlots, slots_lease_ms } from "../../core/store/engine-slots.ts";
import { within } from "../../core/time/cancellation.ts";
import type { RedisConnection } from "./connection.ts";

/**
 * If no process exchanged slots for this long, Redis was away for all processes, and their leases are prolonged by the
 * time that it was away.
 */
const silence_ms = 500;
/** An engine whose slots nobody has exchanged for this long is forgotten. */
const forget_ms = 7 * 24 * 3_600_000;

/**
 * The script of an exchange. Fields of the hash: `at` is the time of the last exchange. `settled` is the time from
 * which slots are given: after a hash was created anew, each process must first report what it holds, because Redis may
 * have lost that. Each other field is a process.
 *
 * A process's target is its share by weight, but no more than it wants. Slots that nobody wants are spread evenly, so
 * that each process has some if Redis falls silent. If there are fewer slots than processes, each second another
 * process is the first to be given one.
 */
const exchangeScript = `
local key, me = KEYS[1], ARGV[2]
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local known = tonumber
local function process_of(name, number, ends, a, b, c, d, e, f, weight)
  return { name = name, number = known(number), ends = known(ends), limits = { known(a), known(b) },
    held = { known(c), known(d) }, wanted = { known(e), known(f) }, weight = known(weight), target = {} }
end
local fields_of = string.rep('(%S+) ', 8) .. '(%S+)'

local fields, at, settled, found = redis.call('HGETALL', key), nil, nil, {}
for place = 1, #fields, 2 do
  local name, value = fields[place], fields[place + 1]
  if name == 'at' then at = tonumber(value)
  elseif name == 'settled' then settled = tonumber(value)
  else found[#found + 1] = process_of(name, string.match(value, fields_of)) end
end
if not at then at, settled = now, now + ${slots_lease_ms} end

local away = now - at
if away < 0 or away > ${silence_ms} then
  if settled > at then settled = settled + away end
  for _, one in ipairs(found) do one.ends = one.ends + away end
else
  away = 0
end

-- The order of the processes has to stay the same, whichever process asks.
local all, gone, place_of_mine, number = {}, {}, nil, known(ARGV[3])
for _, one in ipairs(found) do
  if one.name == me then
    if one.number >= number then return false end
    place_of_mine = #all + 1
    all[place_of_mine] = one
  elseif one.ends > now then all[#all + 1] = one
  else gone[#gone + 1] = one.name end
end
local mine = process_of(me, number, now + ${slots_lease_ms}, unpack(ARGV, 4))
all[place_of_mine or #all + 1] = mine

local function limit_of(part)
  local limit = math.huge
  for _, one in ipairs(all) do
    limit = math.min(limit, part and one.limits[part] or one.limits[1] + one.limits[2])
  end
  return limit
end

-- Slots per unit of weight, if there are too few for all: who wants less than that share leaves the rest to the others.
local function level_of(part, limit)
  local order, weights = {}, 0
  for place, one in ipairs(all) do order[place], weights = one, weights + one.weight end
  table.sort(order, function(one, other) return one.wanted[part] * other.weight < other.wanted[part] * one.weight end)
  for _, one in ipairs(order) do
    if one.wanted[part] * weights > limit * one.weight then break end
    limit, weights = limit - one.wanted[part], weights - one.weight
  end
  return limit / weights
end

local function give_targets(part)
  local limit, wanted = limit_of(part), 0
  for _, one in ipairs(all) do wanted = wanted + one.wanted[part] end
  local level, left = wanted > limit and level_of(part, limit), limit
  for _, one in ipairs(all) do
    one.target[part] = level and math.min(one.wanted[part], math.floor(level * one.weight + 1e-9)) or one.wanted[part]
    left = left - one.target[part]
  end
  local from = limit < #all and math.floor(now / 1000) or 0
  if level then
    for place = from, from + #all - 1 do
      local one = all[place % #all + 1]
      local more = math.min(1, left, one.wanted[part] - one.target[part])
      one.target[part], left = one.target[part] + more, left - more
    end
  end
  local each, more = math.floor(left / #all), left % #all
  for place = from, from + #all - 1 do
    local one = all[place % #all + 1]
    one.target[part], more = one.target[part] + each + (more > 0 and 1 or 0), more - 1
  end
end
give_targets(1)
give_targets(2)

local function free_in(part)
  local free = limit_of(part)
  for _, one in ipairs(all) do free = free - (part and one.held[part] or one.held[1] + one.held[2]) end
  return free
end
if now >= settled then
  for part = 1, 2 do
    local more = math.min(mine.target[part] - mine.held[part], free_in(part), free_in(nil))
    if more > 0 then mine.held[part] = mine.held[part] + more end
  end
end
-- If a process comes back whose slots others were given, more slots are held than exist. Each process then gives some
-- back.
for part = 1, 2 do
  local over = -math.min(0, free_in(part), free_in(nil))
  mine.target[part] = math.max(0, math.min(mine.target[part], mine.held[part] - over))
end

local is_short = 0
for _, one in ipairs(all) do
  for part = 1, 2 do
    if one ~= mine and math.min(one.wanted[part], one.target[part]) > one.held[part] then is_short = 1 end
  end
end

local function write(one)
  redis.call('HSET', key, one.name, string.format('%d %d %d %d %d %d %d %d %s', one.number, one.ends, one.limits[1],
    one.limits[2], one.held[1], one.held[2], one.wanted[1], one.wanted[2], tostring(one.weight)))
end
redis.call('HSET', key, 'at', string.format('%d', now), 'settled', string.format('%d', settled))
for _, one in ipairs(away ~= 0 and all or { mine }) do write(one) end
if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
redis.call('PEXPIRE', key, ${forget_ms})
return { mine.held[1], mine.held[2], mine.target[1], mine.target[2], #all, is_short }
`;

const leaveScript = "return redis.call('HDEL', KEYS[1], ARGV[1])";

type Reply = [
  common: number,
  reserved: number,
  commonTarget: number,
  reservedTarget: number,
  all: number,
  short: 0 | 1,
];

interface EngineSlotsOptions {
  /** How long an exchange waits for an answer. A later answer is ignored. */
  answer_ms?: number;
  /** The prefix of keys. Tests that share one Redis use different ones. */
  prefix?: string;
  /** A clock in whole milliseconds that replaces that of Redis. */
  now_ms?: () => number;
}

export function redisEngineSlots(
  redis: Pick<RedisConnection, "script">,
  { answer_ms = 500, prefix = "sluice:slots:", now_ms }: EngineSlotsOptions = {},
): EngineSlots {
  const exchange = redis.script(exchangeScript);
  const leave = redis.script(leaveScript);
  const keyOf = (engine: string) => `${prefix}{${new Bun.CryptoHasher("sha256").update(engine).digest("hex")}}`;
  return {
    async exchange(engine, { name, number, limits, held, wanted, weight }) {
      const numbers = [limits, held, wanted].flatMap(({ common, reserved }) => [common, reserved]);
      const args = [now_ms?.() ?? "", name, number, ...numbers, weight].map(String);
      const reply = (await within(exchange([keyOf(engine)], args), answer_ms, "Redis")) as Reply | null;
      if (reply === null) throw new Error("a later exchange of this process is known");
      const [common, reserved, commonTarget, reservedTarget, processes, short] = reply;
      return {
        held: { common, reserved },
        target: { common: commonTarget, reserved: reservedTarget },
        processes,
        isShort: short === 1,
      };
    },
    async leave(engine, name) {
      await within(leave([keyOf(engine)], [name]), answer_ms, "Redis");
    },
  };
}
