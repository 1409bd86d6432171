/**
 * Limits of engines in Redis, for many nodes. One hash for each engine has a field for each process, with the slots that
 * it holds and until when. One script makes an exchange. The sum of what is held never rises above the limit: the script
 * gives only what is free, takes nothing from a process that renews, and believes what a process says that it holds.
 */
import { type EngineSlots, slots_lease_ms } from "../store/engine-slots.ts";
import { within } from "../time/deadline.ts";
import type { RedisConnection } from "./connection.ts";

/** Without any exchange for so long Redis was away for all, and what they hold is prolonged by that time. */
const silence_ms = 500;
/** An engine that nobody has asked for so long is forgotten. */
const forget_ms = 7 * 24 * 3_600_000;

/**
 * Fields: `at` is the time of the last exchange. `settled` is the time from which slots are given: after a hash was made
 * anew, each process has first to say what it holds, because Redis may have lost that. The others are processes.
 *
 * A target is a process's share by weight, and no more than it wants; what nobody wants is spread evenly, so that each
 * has some at hand if Redis falls silent. With fewer slots than processes, each second begins with another process.
 */
const exchangeScript = `
local key, me = KEYS[1], ARGV[2]
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function numbers_of(text)
  local numbers = {}
  for number in string.gmatch(text, '%S+') do numbers[#numbers + 1] = tonumber(number) end
  return numbers
end
local function process_of(name, n)
  return { name = name, number = n[1], ends = n[2], limits = { n[3], n[4] }, held = { n[5], n[6] },
    wanted = { n[7], n[8] }, weight = n[9] }
end

local fields, at, settled, found = redis.call('HGETALL', key), nil, nil, {}
for place = 1, #fields, 2 do
  local name, value = fields[place], fields[place + 1]
  if name == 'at' then at = tonumber(value)
  elseif name == 'settled' then settled = tonumber(value)
  else found[#found + 1] = process_of(name, numbers_of(value)) end
end
if not at then at, settled = now, now + ${slots_lease_ms} end

local away = now - at
if away < 0 or away > ${silence_ms} then
  if settled > at then settled = settled + away end
  for _, one in ipairs(found) do one.ends = one.ends + away end
else
  away = 0
end

local all, mine, gone = {}, nil, {}
for _, one in ipairs(found) do
  if one.name == me then mine = one
  elseif one.ends > now then all[#all + 1] = one
  else gone[#gone + 1] = one.name end
end
local said = numbers_of(table.concat(ARGV, ' ', 3))
if mine and mine.number >= said[1] then return false end
table.insert(said, 2, now + ${slots_lease_ms})
mine = process_of(me, said)
all[#all + 1] = mine
table.sort(all, function(one, other) return one.name < other.name end)

local function limit_of(part)
  local limit = math.huge
  for _, one in ipairs(all) do
    limit = math.min(limit, part and one.limits[part] or one.limits[1] + one.limits[2])
  end
  return limit
end

local function give_targets(part)
  local limit = limit_of(part)
  local from = limit < #all and math.floor(now / 1000) or 0
  local order, left, weights = {}, limit, 0
  for place, one in ipairs(all) do
    one.turn, one.target = (place + from) % #all, one.target or {}
    order[place], weights = one, weights + one.weight
  end
  table.sort(order, function(one, other)
    return one.wanted[part] / one.weight < other.wanted[part] / other.weight
  end)
  for _, one in ipairs(order) do
    if one.wanted[part] * weights > left * one.weight then break end
    left, weights = left - one.wanted[part], weights - one.weight
  end
  local level = weights > 0 and left / weights or math.huge
  left = limit
  for _, one in ipairs(order) do
    one.target[part] = math.min(one.wanted[part], math.floor(level * one.weight + 1e-9))
    left = left - one.target[part]
  end
  table.sort(order, function(one, other) return one.turn < other.turn end)
  for _, one in ipairs(order) do
    local more = math.min(1, left, one.wanted[part] - one.target[part])
    one.target[part], left = one.target[part] + more, left - more
  end
  for place, one in ipairs(order) do
    one.target[part] = one.target[part] + math.floor(left / #order) + (place <= left % #order and 1 or 0)
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
-- More is held than there is: a process came back whose slots others have by now. Each gives back until it fits.
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

export interface EngineSlotsOptions {
  /** An answer after this time does not count. */
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
      const said = [limits, held, wanted].flatMap(({ common, reserved }) => [common, reserved]);
      const args = [now_ms?.() ?? "", name, number, ...said, weight].map(String);
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
