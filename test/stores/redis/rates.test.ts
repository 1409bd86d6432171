// Sliding rates in Redis, beyond the rules of all stores (test/core/store/rates.test.ts): Redis' own clock, and its
// failures.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Redis } from "ioredis";
import type { RateSubject, Rates, RateTaken } from "../../../src/core/store/rates.ts";
import { type RedisConnection, redisConnection } from "../../../src/stores/redis/connection.ts";
import { redisRates } from "../../../src/stores/redis/rates.ts";
import { newHex, newRequestId } from "../../core/store/ledger-stores.ts";
import { ofOrganization } from "../../core/store/rates-stores.ts";
import { busyness } from "../../harness/busyness.ts";
import { redisUrl, type Service, startRedis } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

/** A Redis for this file alone, because it is paused, flushed and stopped. */
let own: Service;
let port: number;
let connection: RedisConnection;
let client: Redis;
const failures: unknown[] = [];
const open: (() => void)[] = [];

beforeAll(async () => {
  own = await startRedis();
  port = Number(new URL(own.url).port);
  connection = redisConnection(own.url, (cause) => failures.push(cause));
  client = new Redis(own.url);
  client.on("error", () => {});
  open.push(
    () => connection.close(),
    () => client.disconnect(),
  );
  await connection.ping(10_000);
});
afterAll(async () => {
  for (const close of open) close();
  await own.stop();
});

const requestOf = (organizationId: string, perMinute: number) => ({
  ...{ organizationId, requestId: newRequestId(), tokens: 1, tokens_min: 1 },
  subjects: ofOrganization(organizationId, { requestsPerMinute: perMinute, tokensPerMinute: null }),
});
const newOrganizationId = () => `org_${newHex()}`;

test("nodes whose clocks differ agree, for Redis's own decides", async () => {
  const organizationId = newOrganizationId();
  const other = redisConnection(own.url, () => {});
  await other.ping(10_000);
  const nodes = [redisRates(connection, { answer_ms: 5_000 }), redisRates(other, { answer_ms: 5_000 })];
  const answers = [];
  for (let i = 0; i < 6; i++) answers.push((await nodes[i % 2]!.take(requestOf(organizationId, 4))).answer);
  expect(answers).toEqual(["taken", "taken", "taken", "taken", "refused", "refused"]);
  other.close();
});

test("an organization, its teams and keys have one key each, under its tag, and all are gone when their minute is", async () => {
  const organizationId = newOrganizationId();
  const rates = redisRates(connection, { answer_ms: 5_000 });
  const request = requestOf(organizationId, 4);
  const limits = { requestsPerMinute: 3, tokensPerMinute: null };
  const own: RateSubject[] = [
    { limitedBy: "key", id: "key_1", limits },
    { limitedBy: "team", id: "team_1", limits },
  ];
  const taken = (await rates.take({ ...request, subjects: [...own, ...request.subjects] })) as RateTaken;
  await taken.correct(7);
  const keys = await client.keys(`*${organizationId}*`);
  const whole = `sluice:rates:{${organizationId}}`;
  expect(keys.sort()).toEqual([whole, `${whole}:key_1`, `${whole}:team_1`]);
  for (const key of keys) {
    const left_ms = await client.pttl(key);
    expect(left_ms).toBeGreaterThan(60_000);
    expect(left_ms).toBeLessThanOrEqual(62_000);
  }
});

/** The time limit of a test that would wait for a correction forever. */
const hangs_ms = 15_000;
const scripts = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info("commandstats"))?.[1] ?? 0);
const tokensLeft = async (rates: Rates, organizationId: string) =>
  (await rates.read(organizationId, tokens(organizationId)))[0]!.tokens!.remaining;
const tokens = (organizationId: string) =>
  ofOrganization(organizationId, { requestsPerMinute: null, tokensPerMinute: 1000 });
const withTokens = async (rates: Rates, organizationId: string, tokens_min: number) => {
  const request = { organizationId, requestId: newRequestId(), tokens: tokens_min, tokens_min };
  return (await rates.take({ ...request, subjects: tokens(organizationId) })) as RateTaken;
};

test(
  "a request asks Redis once: its correction goes with the next request of its organization",
  async () => {
    const rates = redisRates(connection, { answer_ms: 5_000, wait_ms: 60_000 });
    const organizationId = newOrganizationId();
    await withTokens(rates, organizationId, 1);
    const before = await scripts();
    let told = Promise.resolve();
    for (let i = 0; i < 100; i++) {
      const taken = await withTokens(rates, organizationId, 900);
      expect(taken.answer).toBe("taken");
      told = taken.correct(0);
    }
    expect((await scripts()) - before).toBe(100);
    await rates.close();
    await told;
    expect((await scripts()) - before).toBe(101);
    expect(await tokensLeft(rates, organizationId)).toBe(999);
  },
  hangs_ms,
);

test(
  "a correction that no request comes for goes by itself, within some milliseconds, and those of one organization together",
  async () => {
    const rates = redisRates(connection, { answer_ms: 5_000 });
    const organizationId = newOrganizationId();
    const taken = await Promise.all(Array.from({ length: 8 }, () => withTokens(rates, organizationId, 100)));
    const before = await scripts();
    const begun = performance.now();
    await Promise.all(taken.map((one) => one.correct(10)));
    expect(performance.now() - begun).toBeLessThan(5_000 * busyness());
    expect((await scripts()) - before).toBe(1);
    expect(await tokensLeft(rates, organizationId)).toBe(1000 - 80);
  },
  hangs_ms,
);

test(
  "a correction that takes more does not wait: late, it would let too much in elsewhere",
  async () => {
    const rates = redisRates(connection, { answer_ms: 5_000, wait_ms: 60_000 });
    const elsewhere = redisRates(connection, { answer_ms: 5_000 });
    const organizationId = newOrganizationId();
    const [less, more] = [await withTokens(rates, organizationId, 100), await withTokens(rates, organizationId, 100)];
    const told = less.correct(50);
    await more.correct(900);
    await told;
    expect(await tokensLeft(elsewhere, organizationId)).toBe(50);
  },
  hangs_ms,
);

test(
  "so many corrections of an organization wait, and no more",
  async () => {
    const rates = redisRates(connection, { answer_ms: 5_000, wait_ms: 60_000 });
    const elsewhere = redisRates(connection, { answer_ms: 5_000 });
    const organizationId = newOrganizationId();
    const taken = await Promise.all(Array.from({ length: 100 }, () => withTokens(rates, organizationId, 10)));
    for (const one of taken) void one.correct(0);
    await until(async () => (await tokensLeft(elsewhere, organizationId)) === 960, 10_000, "96 of them to be told");
  },
  hangs_ms,
);

test(
  "a correction ends with the call that carries it, also where Redis is away",
  async () => {
    let isAway = false;
    const cut: Pick<RedisConnection, "script" | "isOneServer"> = {
      isOneServer: () => true,
      script(lua) {
        const call = connection.script(lua);
        return (...words) => (isAway ? Promise.reject(new Error("away")) : call(...words));
      },
    };
    const rates = redisRates(cut, { answer_ms: 5_000, wait_ms: 60_000 });
    const organizationId = newOrganizationId();
    const [one, other] = [await withTokens(rates, organizationId, 10), await withTokens(rates, organizationId, 10)];
    isAway = true;
    const told = one.correct(0);
    await expect(withTokens(rates, organizationId, 10)).rejects.toThrow("away");
    await told;
    const closing = other.correct(0);
    await rates.close();
    await closing;
  },
  hangs_ms,
);

test("entries that ended, or were given back, leave nothing behind", async () => {
  const organizationId = newOrganizationId();
  let now_ms = 1_000_000;
  const rates = redisRates(connection, { answer_ms: 5_000, now_ms: () => now_ms });
  for (let i = 0; i < 300; i++) {
    const taken = (await rates.take(requestOf(organizationId, 500))) as RateTaken;
    if (i % 3 === 0) await taken.giveBack();
    now_ms += 10;
  }
  now_ms += 60_000;
  await rates.take(requestOf(organizationId, 500));
  const key = `sluice:rates:{${organizationId}}`;
  const fields = await client.hgetall(key);
  expect(Object.keys(fields).filter((field) => /^\d+$/.test(field))).toHaveLength(1);
  expect(fields).toMatchObject({ requests: "1", tokens: "1" });
});

test("two scripts may be used for the first time in one turn", async () => {
  const fresh = redisConnection(own.url, () => {});
  open.push(() => fresh.close());
  const [one, two] = [1, 2].map((number) => fresh.script(`return ARGV[1] .. '${number}'`));
  await fresh.ping(10_000);
  expect(await Promise.all([one!(["{a}"], ["x"]), two!(["{a}"], ["y"]), one!(["{a}"], ["z"])])).toEqual([
    "x1",
    "y2",
    "z1",
  ]);
});

test("scripts that Redis forgot are told it again", async () => {
  const rates = redisRates(connection, { answer_ms: 5_000 });
  const organizationId = newOrganizationId();
  await rates.take(requestOf(organizationId, 2));
  await client.script("FLUSH");
  const answers = await Promise.all(Array.from({ length: 5 }, () => rates.take(requestOf(organizationId, 2))));
  expect(answers.filter(({ answer }) => answer === "taken")).toHaveLength(1);
});

test("a correction of what Redis forgot changes nobody else's count", async () => {
  const rates = redisRates(connection, { answer_ms: 5_000 });
  const organizationId = newOrganizationId();
  const lost = (await rates.take({ ...requestOf(organizationId, 5), tokens: 50 })) as RateTaken;
  await client.del(`sluice:rates:{${organizationId}}`);
  await rates.take(requestOf(organizationId, 5));
  await lost.correct(0);
  await lost.giveBack();
  expect(await rates.take(requestOf(organizationId, 5))).toMatchObject({ readings: { requests: { remaining: 3 } } });
});

test("a Redis that does not answer is given up after a tenth of a second, and asked again later", async () => {
  const rates = redisRates(connection);
  const organizationId = newOrganizationId();
  await rates.take(requestOf(organizationId, 100));
  await client.client("PAUSE", 3000, "ALL");
  const begun = performance.now();
  await expect(rates.take(requestOf(organizationId, 100))).rejects.toThrow("did not answer");
  expect(performance.now() - begun).toBeLessThan(2500 * busyness());
  await until(() => answers(rates, organizationId), 10_000, "Redis to answer again");
});

test("a Redis that is down is known to be: nothing waits for it, and it is used when it is back", async () => {
  const rates = redisRates(connection);
  const organizationId = newOrganizationId();
  await rates.take(requestOf(organizationId, 100));
  await own.stop();
  await until(async () => !(await answers(rates, organizationId)), 10_000, "the connection to be seen lost");
  const begun = performance.now();
  for (let i = 0; i < 60; i++) await expect(rates.take(requestOf(organizationId, 100))).rejects.toThrow();
  expect(performance.now() - begun).toBeLessThan(90 * 60);
  own = await startRedis(port);
  await until(() => answers(rates, organizationId), 20_000, "Redis to be used again");
});

test("many at once on Redis's own clock: exactly the limit, on single entries and on shared ones", async () => {
  const shared = redisConnection(await redisUrl(), () => {});
  await shared.ping(10_000);
  const rates = redisRates(shared, { prefix: `test:${newHex()}:`, answer_ms: 10_000 });
  for (const perMinute of [50, 7_000]) {
    const organizationId = newOrganizationId();
    const answers = await Promise.all(
      Array.from({ length: perMinute + 100 }, () => rates.take(requestOf(organizationId, perMinute))),
    );
    expect(answers.filter(({ answer }) => answer === "taken")).toHaveLength(perMinute);
  }
  shared.close();
});

test("a thousand at once on three nodes against five a minute of a key, and of a team: five, and the others miss none", async () => {
  const url = await redisUrl();
  const connections = Array.from({ length: 3 }, () => redisConnection(url, () => {}));
  await Promise.all(connections.map((one) => one.ping(10_000)));
  const options = { prefix: `test:${newHex()}:`, answer_ms: 30_000 };
  const nodes = connections.map((one) => redisRates(one, options));
  const ofFive = { requestsPerMinute: 5, tokensPerMinute: null };
  for (const limitedBy of ["key", "team"] as const) {
    const organizationId = newOrganizationId();
    const { subjects: whole } = requestOf(organizationId, 50);
    const limited: RateSubject = { limitedBy, id: `${limitedBy}_${newHex()}`, limits: ofFive };
    const ask = (index: number, subjects: RateSubject[]) =>
      nodes[index % 3]!.take({ ...requestOf(organizationId, 50), subjects });
    const own = Array.from({ length: 1_000 }, (_, index) => ask(index, [limited, ...whole]));
    const others = Array.from({ length: 45 }, (_, index) => ask(index, whole));
    const answered = await Promise.all(own);
    expect(answered.filter(({ answer }) => answer === "taken")).toHaveLength(5);
    expect(answered.filter((one) => one.answer === "refused" && one.limitedBy === limitedBy)).toHaveLength(995);
    expect((await Promise.all(others)).filter(({ answer }) => answer === "taken")).toHaveLength(45);
    expect((await ask(0, whole)).answer).toBe("refused");
  }
  for (const one of connections) one.close();
});

async function answers(rates: ReturnType<typeof redisRates>, organizationId: string): Promise<boolean> {
  return rates.take(requestOf(organizationId, 1_000)).then(
    () => true,
    () => false,
  );
}
