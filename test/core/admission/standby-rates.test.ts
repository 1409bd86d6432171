// Two stores of sliding rates, of which the first goes away: the limit holds for all that this node lets through.

import { beforeEach, expect, test } from "bun:test";
import { standbyRates } from "../../../src/core/admission/standby-rates.ts";
import type { RateRequest, RateSubject, Rates, RateTaken } from "../../../src/core/store/rates.ts";
import { memoryRates } from "../../../src/stores/memory/rates.ts";
import { ofOrganization } from "../store/rates-stores.ts";
import { organizationId, settled, VirtualClock } from "./virtual-time.ts";

let clock: VirtualClock;
let first: Cut;
let standby: Cut;
let turns: unknown[];
let rates: Rates;
let number = 0;

beforeEach(async () => {
  clock = new VirtualClock();
  first = new Cut(clock);
  standby = new Cut(clock);
  turns = [];
  rates = standbyRates({ first, standby, clock, turned: (cause) => turns.push(cause) });
  // Nobody counted anything elsewhere in the last minute.
  await clock.advance(120_000);
});

/** A store behind a wire that a test cuts. */
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
const answers = async (count: number, perMinute: number) => {
  const all = [];
  for (let i = 0; i < count; i++) all.push((await take(perMinute)).answer);
  return all;
};

test("while all is well the first counts alone", async () => {
  expect(await answers(3, 2)).toEqual(["taken", "taken", "refused"]);
  expect(standby.asked).toEqual([]);
  expect(turns).toEqual([]);
});

test("when the first is away the standby counts, told how long the first counted alone", async () => {
  await take(5);
  await clock.advance(4_000);
  first.away = "down";
  expect(await answers(2, 5)).toEqual(["taken", "taken"]);
  expect(standby.asked.map((request) => request.elsewhere_ms)).toEqual([4_000, 4_000]);
  expect(turns).toHaveLength(1);
  await clock.advance(60_000);
  await take(5);
  expect(standby.asked.at(-1)?.elsewhere_ms).toBeUndefined();
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
  // The one that tried was counted once.
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
  const before = standby.asked.length;
  await answers(2, 4);
  expect(standby.asked.length).toBe(before);
});

test("what one of both refuses, the other gets back", async () => {
  first.away = "down";
  await take(10);
  first.away = "well";
  await clock.advance(1_000);
  expect(await answers(1, 1)).toEqual(["refused"]);
  await settled();
  // The standby holds one of the past and the first none: both have room for one more under a limit of two.
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

test("what is left is read where it is counted, and from the standby while the first is away", async () => {
  const subjects = ofOrganization(organizationId, { requestsPerMinute: 5, tokensPerMinute: null });
  const left = async () => (await rates.read(organizationId, subjects))[0]!.requests!.remaining;
  await take(5);
  await take(5);
  expect(await left()).toBe(3);
  first.away = "down";
  // Not known to be away yet.
  expect(await left()).toBe(5);
  await take(5);
  expect(await left()).toBe(4);
  standby.away = "down";
  await expect(left()).rejects.toThrow("away");
});

test("with both away nobody knows, and that is an error", async () => {
  first.away = "down";
  standby.away = "down";
  await expect(take(1)).rejects.toThrow("away");
  await clock.advance(1_000);
  await expect(take(1)).rejects.toThrow("away");
  first.away = "well";
  await clock.advance(1_000);
  expect(await answers(2, 1)).toEqual(["taken", "refused"]);
});
