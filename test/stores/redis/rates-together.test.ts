// The calls to the sliding rates that are made within one turn of the event loop, or while a call is under way, go to Redis
// in one call (on a cluster, in one for each organization), and are answered one by one.

import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { Redis, ReplyError } from "ioredis";
import type { RateAnswer, RateSubject, Rates } from "../../../src/core/store/rates.ts";
import { within } from "../../../src/core/time/cancellation.ts";
import { type RedisConnection, redisConnection } from "../../../src/stores/redis/connection.ts";
import { redisRates } from "../../../src/stores/redis/rates.ts";
import type { TakeReply } from "../../../src/stores/redis/rates-script.ts";
import { newHex, newRequestId } from "../../core/store/ledger-stores.ts";
import { ofOrganization } from "../../core/store/rates-stores.ts";
import { holds } from "../../harness/depth.ts";
import { redisUrl } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const prefix = `test:${newHex()}:`;
const start_ms = Date.parse("2026-11-21T03:00:00.400Z");
let connection: RedisConnection;
let client: Redis;
let now_ms = start_ms;
/** The number of requests in each call to Redis, and on the next line whether Redis is down. */
let calls: number[] = [];
let isAway = false;
let isCluster = false;

beforeAll(async () => {
  connection = redisConnection(await redisUrl(), () => {});
  client = new Redis(await redisUrl());
  await connection.ping(10_000);
});
beforeEach(() => {
  [calls, isAway, isCluster, now_ms] = [[], false, false, start_ms];
});
afterAll(() => {
  connection.close();
  client.disconnect();
});

const counted: Pick<RedisConnection, "script" | "isOneServer"> = {
  isOneServer: () => !isCluster,
  script(lua) {
    const call = connection.script(lua);
    return (keys, words) => {
      calls.push((JSON.parse(words[0]!) as [unknown, unknown, unknown[]])[2].length);
      return isAway ? Promise.reject(new Error("away")) : call(keys, words);
    };
  },
};
const ratesOf = (name: string): Rates =>
  redisRates(counted, { prefix: `${prefix}${name}:`, now_ms: () => now_ms, answer_ms: 10_000, wait_ms: 60_000 });

const newOrganizationId = () => `org_${newHex()}`;
const requestOf = (organizationId: string, perMinute: number, requestId = newRequestId()) => ({
  ...{ organizationId, requestId, tokens: 1, tokens_min: 1 },
  subjects: ofOrganization(organizationId, { requestsPerMinute: perMinute, tokensPerMinute: null }),
});

test.each([
  ["one server", [6]],
  ["a cluster", [2, 4]],
] as const)(
  "what requests of two organizations ask in one turn of %s goes in calls of %p",
  async (server, expected) => {
    isCluster = server === "a cluster";
    const rates = ratesOf(`once on ${server}`);
    const [one, other] = [newOrganizationId(), newOrganizationId()];
    const asked = [one, other, one, other, one].map((id) => rates.take(requestOf(id, 2)));
    const readings = rates.read(one, requestOf(one, 2).subjects);
    const answers = (await Promise.all(asked)).map(({ answer }) => answer);
    expect(answers).toEqual(["taken", "taken", "taken", "taken", "refused"]);
    expect((await readings)[0]!.requests!.remaining).toBe(0);
    expect(calls.sort()).toEqual([...expected]);
  },
);

test("corrections of all organizations ride with the next request of any", async () => {
  const rates = ratesOf("corrections");
  const ids = Array.from({ length: 20 }, newOrganizationId);
  const answers = await Promise.all(ids.map((id) => rates.take({ ...requestOf(id, 1), tokens: 9 })));
  const given = answers.map((answer) => (answer.answer === "taken" ? answer.giveBack() : null));
  await rates.take(requestOf(newOrganizationId(), 1));
  await Promise.all(given);
  expect(calls).toEqual([20, 1]);
  const again = await Promise.all(ids.map((id) => rates.take(requestOf(id, 1))));
  expect(again.map(({ answer }) => answer)).toEqual(ids.map(() => "taken"));
});

test("a call carries so many requests, and no more", async () => {
  const rates = ratesOf("many");
  const organizationId = newOrganizationId();
  const answers = await Promise.all(Array.from({ length: 150 }, () => rates.take(requestOf(organizationId, 100))));
  expect(answers.filter(({ answer }) => answer === "taken")).toHaveLength(100);
  expect(calls).toEqual([64, 64, 22]);
});

test("a call that fails has failed for each request in it, and for no other", async () => {
  const rates = ratesOf("away");
  const organizationId = newOrganizationId();
  const three = () => Promise.allSettled([1, 2, 3].map(() => rates.take(requestOf(organizationId, 3))));
  isAway = true;
  expect((await three()).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  isAway = false;
  expect((await three()).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  expect(calls).toEqual([3, 3]);
});

/**
 * Rates over a Redis that answers when the test says so. `other`: an error, or a text that it answers with in the place
 * of counts.
 */
function heldBack(answer_ms: number, isOneServer = true) {
  const sent: { requests: number; answer(other?: Error | string): void }[] = [];
  const redis: Pick<RedisConnection, "script" | "isOneServer"> = {
    isOneServer: () => isOneServer,
    script: () => (_, words) => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const [, , takes] = JSON.parse(words[0]!) as [unknown, unknown, unknown[]];
      const reply: TakeReply = [1, 1, [[1, 1, 0, 0, 0, 1, 0]]];
      const replies = JSON.stringify(takes.map(() => reply));
      sent.push({
        requests: takes.length,
        answer: (other = replies) => (other instanceof Error ? reject(other) : resolve(other)),
      });
      return promise;
    },
  };
  const rates = redisRates(redis, { answer_ms, wait_ms: 60_000 });
  const take = (organizationId = newOrganizationId()) =>
    rates.take(requestOf(organizationId, 5)).then(({ answer }) => answer);
  return { sent, take, isSent: (calls: number) => until(() => sent.length === calls, 10_000, `${calls} calls`) };
}
/** Waits for so long, counted as the deadlines are. */
const countedDown = (wait_ms: number) => within(new Promise(() => {}), wait_ms, "nobody").catch(() => {});
const turnOfLoop = () => new Promise((resolve) => setImmediate(resolve));

test("what is asked in several turns while a call is under way goes in one call, when that is over", async () => {
  const { sent, take, isSent } = heldBack(10_000);
  const first = take();
  await isSent(1);
  const later = [take(), take()];
  await turnOfLoop();
  later.push(take());
  await turnOfLoop();
  expect(sent).toHaveLength(1);
  sent[0]!.answer();
  await isSent(2);
  sent[1]!.answer();
  expect(await Promise.all([first, ...later])).toEqual(["taken", "taken", "taken", "taken"]);
  expect(sent.map(({ requests }) => requests)).toEqual([1, 3]);
});

test("a whole call's requests do not wait for the call before, and the rest for the last", async () => {
  const { sent, take, isSent } = heldBack(10_000);
  const answers = [take()];
  await isSent(1);
  for (let request = 0; request < 65; request++) answers.push(take());
  expect(sent.map(({ requests }) => requests)).toEqual([1, 64]);
  sent[0]!.answer();
  await answers[0];
  await turnOfLoop();
  expect(sent).toHaveLength(2);
  sent[1]!.answer();
  await isSent(3);
  sent[2]!.answer();
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["taken"]));
});

test("what waits for a call that Redis refuses is sent all the same", async () => {
  const { sent, take, isSent } = heldBack(10_000);
  const first = take();
  await isSent(1);
  const next = take();
  sent[0]!.answer(new ReplyError("OOM"));
  await expect(first).rejects.toThrow("OOM");
  await isSent(2);
  sent[1]!.answer();
  expect(await next).toBe("taken");
});

test("what waits for a call without an answer fails with it, and what comes after that is sent", async () => {
  const { sent, take, isSent } = heldBack(50);
  const first = take();
  await isSent(1);
  const failures = await Promise.all([first, take()].map((one) => one.catch(String)));
  for (const failure of failures) expect(failure).toContain("did not answer");
  expect(sent).toHaveLength(1);
  const later = take();
  await isSent(2);
  sent[1]!.answer();
  expect(await later).toBe("taken");
});

test("what waits for a call is answered or given up in the time that a call has, the wait included", async () => {
  const { sent, take, isSent } = heldBack(600);
  const ends: string[] = [];
  const first = take();
  await isSent(1);
  const waited = take().catch(() => ends.push("what waited"));
  await countedDown(400);
  sent[0]!.answer();
  expect(await first).toBe("taken");
  await isSent(2);
  // Of the 600 ms, 200 are left. The other countdown begins later, and stands still when this one does.
  await Promise.all([waited, countedDown(400).then(() => ends.push("400 ms more"))]);
  expect(ends).toEqual(["what waited", "400 ms more"]);
});

test("what an organization asks of a cluster waits for no call", async () => {
  const { sent, take, isSent } = heldBack(10_000, false);
  const organizationId = newOrganizationId();
  const first = take(organizationId);
  await isSent(1);
  const next = take(organizationId);
  await isSent(2);
  for (const call of sent) call.answer();
  expect(await Promise.all([first, next])).toEqual(["taken", "taken"]);
});

test.each(["null", "7", "none"])("an answer without counts (%s) holds up nothing that comes later", async (text) => {
  const { sent, take, isSent } = heldBack(10_000);
  const first = take().catch(() => "failed");
  await isSent(1);
  sent[0]!.answer(text);
  expect(await first).toBe("failed");
  const later = take();
  await isSent(2);
  sent[1]!.answer();
  expect(await later).toBe("taken");
});

test("what goes in one call is answered, and counted, as if each request had asked by itself", async () => {
  let rounds = 0;
  await holds(
    fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 8 }), async (turns) => {
      rounds += 1;
      const [together, alone] = [ratesOf(`together${rounds}`), ratesOf(`alone${rounds}`)];
      const organizationId = newOrganizationId();
      now_ms = start_ms;
      for (const { after_ms, asks } of turns) {
        now_ms += after_ms;
        const requests = asks.map((ask) => ({ ...ask, ...requestWith(organizationId, ask) }));
        const answered = (rates: Rates, one: (typeof requests)[number]) =>
          one.next === "reads" ? rates.read(organizationId, one.subjects) : rates.take(one);
        const before = calls.length;
        const inOne = await Promise.all(requests.map((one) => answered(together, one)));
        expect(calls.slice(before)).toEqual([requests.length]);
        const oneByOne = [];
        for (const one of requests) oneByOne.push(await answered(alone, one));
        expect(inOne.map(said)).toEqual(oneByOne.map(said));
        for (const answers of [inOne, oneByOne])
          await Promise.all(requests.map((one, place) => ended(answers[place] as RateAnswer, one)));
      }
      await together.close();
      await alone.close();
      expect(await kept(`together${rounds}`, organizationId)).toEqual(await kept(`alone${rounds}`, organizationId));
    }),
    150,
  );
});

/** A result without its functions, which are not compared. */
const said = (answer: unknown) => JSON.parse(JSON.stringify(answer));

/**
 * Does the step `next` for an admitted request. Waits only for a correction that takes more, which is sent immediately;
 * a correction that gives back is sent with the next turn's call.
 */
async function ended(answer: RateAnswer, { tokens, tokens_min, next }: Ask): Promise<void> {
  if (answer.answer !== "taken") return;
  if (next === "takes more") return answer.correct(tokens + 3);
  if (next === "takes less") void answer.correct(Math.floor(tokens_min / 2));
  if (next === "gives back") void answer.giveBack();
}

/**
 * The sums and entries in Redis. The fields `head` and `end` of a queue are left out: for an empty queue, they depend
 * on the last access to it.
 */
async function kept(name: string, organizationId: string): Promise<unknown> {
  const whole = `${prefix}${name}:{${organizationId}}`;
  const keys = [whole, `${whole}:key_1`, `${whole}:key_2`, `${whole}:team_1`];
  return Promise.all(keys.map(async (key) => ({ ...(await client.hgetall(key)), head: null, end: null })));
}

type Ask = typeof ask extends fc.Arbitrary<infer One> ? One : never;
const ask = fc
  .record({
    who: fc.constantFrom(["key_1", "team_1"], ["key_2", "team_1"], ["key_1"], ["team_1"], []),
    /**
     * Low limits, under which each request has an entry of its own, and high ones, under which the requests of a second
     * share an entry.
     */
    perMinute: fc.constantFrom(2, 5, 9, 40, 7_000, null),
    ofWhole: fc.constantFrom(4, 9, 40, 7_000),
    tokens: fc.nat(20),
    less: fc.nat(20),
    next: fc.constantFrom("runs", "runs", "takes less", "takes more", "gives back", "reads"),
  })
  .map(({ less, ...one }) => ({ ...one, tokens_min: Math.max(0, one.tokens - less) }));
const turn = fc.record({
  after_ms: fc.constantFrom(0, 1, 300, 1_000, 20_000, 59_999, 60_000, 61_000),
  asks: fc.array(ask, { minLength: 1, maxLength: 12 }),
});

function requestWith(organizationId: string, { who, perMinute, ofWhole }: Ask) {
  const tokens = (perMinute: number | null) => (perMinute === null ? null : perMinute * 10);
  const limitsOf = (perMinute: number | null) => ({ requestsPerMinute: perMinute, tokensPerMinute: tokens(perMinute) });
  const subjects: RateSubject[] = who.map((id) => ({
    ...{ limitedBy: id.startsWith("key") ? ("key" as const) : ("team" as const), id, limits: limitsOf(perMinute) },
  }));
  return {
    ...{ organizationId, requestId: newRequestId() },
    subjects: [...subjects, ...ofOrganization(organizationId, limitsOf(ofWhole))],
  };
}
