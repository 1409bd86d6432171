/**
 * Measures the cost of a request's sliding limits for this process and for Redis. The cases are: limits of the
 * organization alone, of its key too, and of key and team; requests of many organizations, which cannot share a call to
 * Redis; and corrections of the counts after a response, sent with the next request or by themselves. The cases take
 * turns, so that other load on the machine affects them equally. Run: bun bench/rates.ts --seconds 30 --together
 * 1,4,16,64
 */
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import type { RateSubject, Rates } from "../src/core/store/rates.ts";
import { memoryRates } from "../src/stores/memory/rates.ts";
import { redisConnection } from "../src/stores/redis/connection.ts";
import { redisRates } from "../src/stores/redis/rates.ts";
import { newHex, newRequestId } from "../test/core/store/ledger-stores.ts";
import { startRedis } from "../test/harness/services.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "30" }, together: { type: "string", default: "8" } },
});
const turn_requests = 256;

interface Case {
  name: string;
  /** The number of concurrent requests. */
  together: number;
  rates: Rates;
  /** The subjects with limits, for each organization. Requests use the organizations in turn. */
  subjects: RateSubject[][];
  store_us(): Promise<number>;
  requests: number;
  node_us: number;
  stored_us: number;
}

const limits = { requestsPerMinute: 1e9, tokensPerMinute: 1e12 };
/** The subjects of a request that have limits: one is the organization, two also the key, three also the team. */
function subjectsOf(count: number): RateSubject[] {
  const all: RateSubject[] = [
    { limitedBy: "key", id: `key_${newHex()}`, limits },
    { limitedBy: "team", id: `team_${newHex()}`, limits },
    { limitedBy: "organization", id: `org_${newHex()}`, limits },
  ];
  return count === 2 ? [all[0]!, all[2]!] : all.slice(3 - count);
}

const redis = await startRedis();
const connection = redisConnection(redis.url, () => {});
await connection.ping(10_000);
const asking = new Redis(redis.url);
async function redis_us(): Promise<number> {
  const found = await asking.info("cpu");
  const seconds = (name: string) => Number(new RegExp(`${name}:([\\d.]+)`).exec(found)![1]);
  return 1e6 * (seconds("used_cpu_user") + seconds("used_cpu_sys"));
}

const patient = { answer_ms: 60_000 };
const ofRedis = (wait?: { wait_ms: number }) => [redisRates(connection, { ...patient, ...wait }), redis_us] as const;
const inMemory = () => [memoryRates(() => performance.now()), async () => 0] as const;
const kinds: [name: string, stored: readonly [Rates, () => Promise<number>], count: number, organizations: number][] = [
  ["Redis: organization", ofRedis(), 1, 1],
  ["Redis: 64 organizations", ofRedis(), 1, 64],
  ["Redis: organization, corrections by themselves", ofRedis({ wait_ms: 0 }), 1, 1],
  ["Redis: organization and key", ofRedis(), 2, 1],
  ["Redis: organization, team and key", ofRedis(), 3, 1],
  ["memory: organization", inMemory(), 1, 1],
  ["memory: organization, team and key", inMemory(), 3, 1],
];
const cases = values.together.split(",").flatMap((together) =>
  kinds.map(([name, [rates, store_us], count, organizations]): Case => {
    const subjects = Array.from({ length: organizations }, () => subjectsOf(count));
    return { name, together: Number(together), rates, store_us, subjects, requests: 0, node_us: 0, stored_us: 0 };
  }),
);

async function one({ name, rates, subjects: all }: Case, number: number): Promise<void> {
  const subjects = all[number % all.length]!;
  const organizationId = subjects.at(-1)!.id;
  const request = { organizationId, requestId: newRequestId(), tokens: 500, tokens_min: 100, subjects };
  const answer = await rates.take(request);
  if (answer.answer !== "taken") throw new Error(`${name}: ${answer.answer}`);
  const told = answer.correct(120);
  // Waits for the correction, so that the next request does not carry it. With real responses, time passes between a
  // correction and the next request.
  if (name.endsWith("themselves")) await told;
}

async function turn(one_case: Case): Promise<void> {
  const store_us = await one_case.store_us();
  const cpu = process.cpuUsage();
  const { together } = one_case;
  for (let done = 0; done < turn_requests; done += together)
    await Promise.all(Array.from({ length: together }, (_, at) => one(one_case, done + at)));
  const { user, system } = process.cpuUsage(cpu);
  one_case.node_us += user + system;
  one_case.stored_us += (await one_case.store_us()) - store_us;
  one_case.requests += turn_requests;
}

for (const warming of cases) for (let i = 0; i < 3; i++) await turn(warming);
for (const measured of cases) Object.assign(measured, { requests: 0, node_us: 0, stored_us: 0 });
const until_ms = performance.now() + Number(values.seconds) * 1000;
while (performance.now() < until_ms) for (const each of cases) await turn(each);

console.log("| limits of | at a time | node µs a request | store µs a request | requests |\n|---|---|---|---|---|");
for (const { name, together, requests, node_us, stored_us } of cases)
  console.log(
    `| ${name} | ${together} | ${(node_us / requests).toFixed(1)} | ${(stored_us / requests).toFixed(1)} | ${requests} |`,
  );
process.exitCode = 0;
for (const { rates } of cases) await rates.close();
asking.disconnect();
connection.close();
await redis.stop();
process.exit();
