// Sliding rates whose shared store (Redis) becomes unavailable: the process then enforces its own share of each limit.
// When the store is back, the requests that the process admitted on its own count against the whole limit, too.

import { beforeEach, expect, test } from "bun:test";
import type { RateRequest, RateSubject, Rates, RateTaken } from "../../../src/core/store/rates.ts";
import type { OwnRates } from "../../../src/stores/counting/rates.ts";
import { memoryRates } from "../../../src/stores/memory/rates.ts";
import { sharedRates, standbyRates } from "../../../src/stores/memory/standby-rates.ts";
import { organizationId, settled, VirtualClock } from "../../core/admission/virtual-time.ts";
import { ofOrganization } from "../../core/store/rates-stores.ts";

let clock: VirtualClock;
let first: Cut;
let own: OwnRates;
let processes: number;
let turns: unknown[];
let rates: Rates;
let number = 0;

beforeEach(async () => {
  clock = new VirtualClock();
  first = new Cut(clock);
  own = memoryRates(() => clock.now_ms());
  processes = 1;
  turns = [];
  const share = sharedRates(own, () => processes);
  rates = standbyRates({ first, own, share, clock, turned: (cause) => turns.push(cause) });
});

/** A rate store whose connection the test can cut. */
class Cut implements Rates {
  asked: RateRequest[] = [];
  away: "well" | "down" | "silent" = "well";
  #clock: VirtualClock;
  #kept: Rates;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
    this.#kept = this.empty();
  }

  empty(): Rates {
    this.#kept = memoryRates(() => this.#clock.now_ms());
    return this.#kept;
  }

  async take(request: RateRequest) {
    this.asked.push(request);
    if (this.away === "down") throw new Error("away");
    if (this.away === "silent") {
      await new Promise<void>((resolve) => this.#clock.after(100, resolve));
      throw new Error("silent");
    }
    return this.#kept.take(request);
  }

  async read(organizationId: string, subjects: readonly RateSubject[]) {
    if (this.away !== "well") throw new Error("away");
    return this.#kept.read(organizationId, subjects);
  }

  async close() {}
}

const take = (perMinute: number) =>
  rates.take({
    organizationId,
    requestId: `req_${number++}`,
    tokens: 1,
    tokens_min: 1,
    subjects: ofOrganization(organizationId, { requestsPerMinute: perMinute, tokensPerMinute: null }),
  });
const ownLeft = async (perMinute: number) => {
  const subjects = ofOrganization(organizationId, { requestsPerMinute: perMinute, tokensPerMinute: null });
  return (await own.read(organizationId, subjects))[0]!.requests!.remaining;
};
const answers = async (count: number, perMinute: number) => {
  const all = [];
  for (let i = 0; i < count; i++) all.push((await take(perMinute)).answer);
  return all;
};

test("while all is well the first counts alone", async () => {
  processes = 2;
  expect(await answers(3, 2)).toEqual(["taken", "taken", "refused"]);
  expect(await ownLeft(2)).toBe(2);
  expect(turns).toEqual([]);
});

test("while the first is away this process has its share, whoever joins and leaves", async () => {
  first.away = "down";
  processes = 3;
  expect(await answers(3, 6)).toEqual(["taken", "taken", "refused"]);
  expect(turns).toHaveLength(1);
  processes = 2;
  expect(await answers(2, 6)).toEqual(["taken", "refused"]);
  processes = 4;
  await clock.advance(60_000);
  expect(await answers(3, 6)).toEqual(["taken", "taken", "refused"]);
});

test("where there is no first at all, three processes share each limit", async () => {
  const fleet = Array.from({ length: 3 }, () =>
    sharedRates(
      memoryRates(() => clock.now_ms()),
      () => 3,
    ),
  );
  let taken = 0;
  for (let turn = 0; turn < 30; turn++) {
    const subjects = ofOrganization(organizationId, { requestsPerMinute: 10, tokensPerMinute: null });
    const asked = { organizationId, requestId: `req_${number++}`, tokens: 1, tokens_min: 1, subjects };
    if ((await fleet[turn % 3]!.take(asked)).answer === "taken") taken += 1;
  }
  expect(taken).toBe(12);
});

test("a first that is back decides by the whole limit, and so does this process for what it let through meanwhile", async () => {
  processes = 3;
  first.away = "down";
  expect(await answers(3, 6)).toEqual(["taken", "taken", "refused"]);
  first.away = "well";
  await clock.advance(1_000);
  expect(await answers(5, 6)).toEqual(["taken", "taken", "taken", "taken", "refused"]);
});

test("a first that is away is tried by one request a second, and by no other", async () => {
  first.away = "silent";
  const begun = take(100);
  await clock.advance(100);
  expect((await begun).answer).toBe("taken");
  const before = first.asked.length;
  expect(await answers(10, 100)).toEqual(Array(10).fill("taken"));
  expect(first.asked.length).toBe(before);
  await clock.advance(1_000);
  const waiting = take(100);
  expect(await answers(10, 100)).toEqual(Array(10).fill("taken"));
  await clock.advance(100);
  expect((await waiting).answer).toBe("taken");
  expect(first.asked.length).toBe(before + 1);
  // The request that was sent to the unavailable store was counted only once.
  expect(((await take(100)) as RateTaken).readings.requests?.remaining).toBe(100 - 23);
});

test("a first that comes back empty has no second limit to give: both count for a minute", async () => {
  first.away = "down";
  expect(await answers(3, 4)).toEqual(["taken", "taken", "taken"]);
  first.away = "well";
  first.empty();
  await clock.advance(1_000);
  expect(await answers(3, 4)).toEqual(["taken", "refused", "refused"]);
  expect(turns).toEqual([expect.any(Error), null]);
  await clock.advance(59_000);
  expect(await answers(4, 4)).toEqual(["taken", "taken", "taken", "refused"]);
  await clock.advance(2_000);
  await answers(2, 40);
  expect(await ownLeft(40)).toBe(37);
});

test("what one of both refuses, the other gets back", async () => {
  first.away = "down";
  await take(10);
  first.away = "well";
  await clock.advance(1_000);
  expect(await answers(1, 1)).toEqual(["refused"]);
  await settled();
  // This process has counted one earlier request and the shared store none. So under a limit of two, both admit one
  // more.
  expect(await answers(2, 2)).toEqual(["taken", "refused"]);
});

test("giving back and correcting reach both", async () => {
  first.away = "down";
  await take(10);
  first.away = "well";
  await clock.advance(1_000);
  for (let i = 0; i < 5; i++) {
    const taken = (await take(2)) as RateTaken;
    expect(taken.answer).toBe("taken");
    await taken.giveBack();
  }
});

test("what is left is read where it is counted, and of this process while the first is away", async () => {
  const subjects = ofOrganization(organizationId, { requestsPerMinute: 5, tokensPerMinute: null });
  const left = async () => (await rates.read(organizationId, subjects))[0]!.requests!.remaining;
  await take(5);
  await take(5);
  expect(await left()).toBe(3);
  first.away = "down";
  // The process has not noticed yet that the store is unavailable.
  expect(await left()).toBe(5);
  processes = 2;
  await take(5);
  expect(await left()).toBe(3);
});
