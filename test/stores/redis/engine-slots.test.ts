/**
 * A limit on an engine's concurrent requests (slots) that a fleet shares: many processes on a virtual clock, with the
 * real script in Redis. The processes start and end requests, freeze, are killed and join; replies of Redis are lost,
 * Redis hangs, and Redis loses its data.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { EngineSlots, SlotCounts } from "../../../src/core/store/engine-slots.ts";
import { Share } from "../../../src/features/sharing/share.ts";
import { type RedisConnection, redisConnection } from "../../../src/stores/redis/connection.ts";
import { redisEngineSlots } from "../../../src/stores/redis/engine-slots.ts";
import { chanceOf } from "../../faults/chance.ts";
import { seed, times } from "../../harness/depth.ts";
import { redisUrl } from "../../harness/services.ts";

setDefaultTimeout(180_000);

let connection: RedisConnection;
beforeAll(async () => {
  connection = redisConnection(await redisUrl(), () => {});
  await connection.ping(10_000);
});
afterAll(() => connection.close());

const kinds = ["common", "reserved"] as const;
const step_ms = 25;
const answer_ms_max = 1_500;

interface Asked {
  part: keyof SlotCounts;
  /** The time at which the engine completes the response. */
  ends_ms: number;
}

/** A process: the slots that it has, and its requests at the engine. */
class Process {
  readonly share: Share;
  running: Asked[] = [];
  waiting: SlotCounts = { common: 0, reserved: 0 };
  frozenUntil_ms = 0;
  constructor(name: string, limits: SlotCounts) {
    this.share = new Share(name, limits);
  }
  get use() {
    const count = (part: keyof SlotCounts) => this.running.filter((one) => one.part === part).length;
    return { running: { common: count("common"), reserved: count("reserved") }, waiting: this.waiting, weight: 1 };
  }
}

class Fleet {
  now_ms = 1_000_000;
  processes: Process[] = [];
  isSilent = false;
  readonly limits: SlotCounts;
  readonly store: EngineSlots;
  readonly engine = crypto.randomUUID();
  #epoch = 0;
  #names = 0;

  constructor(limits: SlotCounts) {
    this.limits = limits;
    this.store = redisEngineSlots(connection, {
      prefix: `test:${crypto.randomUUID()}:`,
      now_ms: () => this.now_ms,
      answer_ms: 60_000,
    });
  }

  join(limits = this.limits): Process {
    const one = new Process(`process-${this.#names++}`, limits);
    this.processes.push(one);
    return one;
  }

  /** Makes Redis lose all its data. */
  forget(): void {
    this.#epoch += 1;
  }

  async exchange(one: Process, isLost = false): Promise<void> {
    const asked = one.share.ask(one.use, this.now_ms);
    const granted = this.isSilent ? null : await this.store.exchange(`${this.engine} ${this.#epoch}`, asked);
    if (granted && !isLost) one.share.granted(granted, one.use);
    else one.share.failed(this.now_ms);
  }

  begin(one: Process, answer_ms: number): void {
    for (const part of kinds)
      while (one.waiting[part] > 0 && one.use.running[part] < one.share.most(this.now_ms)[part]) {
        one.waiting = { ...one.waiting, [part]: one.waiting[part] - 1 };
        one.running.push({ part, ends_ms: this.now_ms + answer_ms });
      }
  }

  end(one: Process): void {
    const before = one.running.length;
    one.running = one.running.filter(({ ends_ms }) => ends_ms > this.now_ms);
    if (one.running.length < before) one.share.ended(one.use.running);
  }

  atEngine(): number {
    const all = this.processes.flatMap(({ running }) => running);
    return all.filter(({ ends_ms }) => ends_ms > this.now_ms).length;
  }

  /** Advances the time by one step, in which each process takes its turn. */
  async step(answer_ms: () => number, isLost = () => false, isBefore = () => false): Promise<void> {
    this.now_ms += step_ms;
    for (const one of this.processes) {
      if (one.frozenUntil_ms > this.now_ms) continue;
      // The process may exchange its numbers with Redis before it knows which of its requests have ended.
      if (isBefore()) await this.exchange(one, isLost());
      this.end(one);
      this.begin(one, answer_ms());
      await this.exchange(one, isLost());
      this.begin(one, answer_ms());
    }
  }
}

const whole = ({ common, reserved }: SlotCounts) => common + reserved;

test("the engine never has more than its limit, whatever happens to processes and to Redis", async () => {
  const begun_ms = performance.now();
  // A slow machine runs fewer rounds.
  for (let round = 0; round < times(3, 60) && performance.now() - begun_ms < 120_000; round++) {
    const random = chanceOf(seed + round);
    const below = (most: number) => Math.floor(random.next() * most);
    const fleet = new Fleet({ common: 1 + below(30), reserved: below(8) });
    const limit = whole(fleet.limits);
    for (let count = 1 + below(6); count > 0; count--) fleet.join();
    let silentUntil_ms = 0;
    for (let step = 0; step < 800; step++) {
      const draw = random.next();
      const some = fleet.processes[below(fleet.processes.length)]!;
      if (draw < 0.004) some.frozenUntil_ms = fleet.now_ms + below(10_000);
      else if (draw < 0.008 && fleet.processes.length > 1)
        fleet.processes = fleet.processes.filter((one) => one !== some);
      else if (draw < 0.012 && fleet.processes.length < 8) fleet.join();
      else if (draw < 0.016) silentUntil_ms = fleet.now_ms + below(6_000);
      else if (draw < 0.018 && fleet.processes.every(({ frozenUntil_ms }) => frozenUntil_ms <= fleet.now_ms))
        fleet.forget();
      else if (draw < 0.5) some.waiting = { common: below(40), reserved: below(6) };
      fleet.isSilent = silentUntil_ms > fleet.now_ms;
      await fleet.step(
        () => 50 + below(answer_ms_max),
        () => random.next() < 0.03,
        () => random.next() < 0.3,
      );
      if (fleet.atEngine() > limit)
        throw new Error(`${fleet.atEngine()} of ${limit} at step ${step} of seed ${seed + round}`);
    }
  }
});

const endless = { common: 1_000, reserved: 0 };

/**
 * Runs the fleet for this long, while only the `busy` processes have waiting requests. Returns the number of running
 * requests of each process at the end.
 */
async function after(fleet: Fleet, length_ms: number, busy: readonly Process[], answer_ms = 400): Promise<number[]> {
  const until_ms = fleet.now_ms + length_ms;
  while (fleet.now_ms < until_ms) {
    for (const one of fleet.processes) one.waiting = busy.includes(one) ? endless : { common: 0, reserved: 0 };
    await fleet.step(() => answer_ms);
    expect(fleet.atEngine()).toBeLessThanOrEqual(whole(fleet.limits));
  }
  return fleet.processes.map(({ running }) => running.length);
}

test("one busy process has the whole limit; all busy ones share it evenly, soon after it is asked for", async () => {
  const fleet = new Fleet({ common: 32, reserved: 0 });
  const [one, other, third] = [fleet.join(), fleet.join(), fleet.join()];
  expect(await after(fleet, 4_000, [one])).toEqual([32, 0, 0]);
  // Running requests end within 400 ms, and then their slots are free for the other processes.
  expect((await after(fleet, 600, [one, other, third])).toSorted()).toEqual([10, 11, 11]);
  expect(await after(fleet, 600, [third])).toEqual([0, 0, 32]);
});

test("the slots of a process that was killed are others' within five seconds", async () => {
  const fleet = new Fleet({ common: 32, reserved: 0 });
  const all = [fleet.join(), fleet.join(), fleet.join()];
  await after(fleet, 5_000, all);
  fleet.processes = all.slice(0, 2);
  expect(await after(fleet, 2_500, all)).not.toEqual([16, 16]);
  expect(await after(fleet, 1_500, all)).toEqual([16, 16]);
});

test("a process that leaves gives everything back at once", async () => {
  const fleet = new Fleet({ common: 32, reserved: 0 });
  const [one, other] = [fleet.join(), fleet.join()];
  await after(fleet, 4_000, [one, other]);
  fleet.processes = [one];
  await fleet.store.leave(`${fleet.engine} 0`, "process-1");
  expect(await after(fleet, 100, [one, other])).toEqual([32]);
});

test("with fewer slots than processes, each has its turn", async () => {
  const fleet = new Fleet({ common: 2, reserved: 0 });
  const all = Array.from({ length: 5 }, () => fleet.join());
  await after(fleet, 3_100, all, 100);
  const had = new Set<Process>();
  for (let turn = 0; turn < 20; turn++) {
    await after(fleet, 500, all, 100);
    for (const one of all) if (one.running.length > 0) had.add(one);
  }
  expect(had.size).toBe(5);
});

test("while Redis is silent each begins only up to its even share, and what runs above it ends first", async () => {
  const fleet = new Fleet({ common: 32, reserved: 0 });
  const all = [fleet.join(), fleet.join(), fleet.join()];
  await after(fleet, 4_000, [all[0]!]);
  fleet.isSilent = true;
  // Nothing changes until Redis has not responded for `slots_fence_ms`.
  expect(await after(fleet, 1_900, all)).toEqual([32, 0, 0]);
  await after(fleet, 600, all);
  expect(all[0]!.running.length).toBe(10);
  expect(all.map(({ share }) => share.isApart(fleet.now_ms))).toEqual([true, true, true]);
  expect(await after(fleet, 10_000, all)).toEqual([10, 0, 0]);
  fleet.isSilent = false;
  expect((await after(fleet, 1_000, all)).toSorted()).toEqual([10, 11, 11]);
  fleet.isSilent = true;
  expect(await after(fleet, 10_000, all)).toEqual([10, 10, 10]);
});

test("while Redis is silent, of fewer slots than processes as many are used", async () => {
  const fleet = new Fleet({ common: 2, reserved: 0 });
  const all = Array.from({ length: 5 }, () => fleet.join());
  // The free slots pass to other processes every second, so this is the middle of such a second.
  await after(fleet, 4_500, []);
  fleet.isSilent = true;
  const running = await after(fleet, 5_000, all);
  expect(running.reduce((sum, count) => sum + count, 0)).toBe(2);
});

test("when Redis is back, the first to ask is not given what another still uses", async () => {
  const fleet = new Fleet({ common: 32, reserved: 0 });
  const [first, one] = [fleet.join(), fleet.join()];
  await after(fleet, 4_000, []);
  await after(fleet, 1_000, [one], 60_000);
  expect(one.running.length).toBe(32);
  fleet.isSilent = true;
  await after(fleet, 6_000, [first]);
  fleet.isSilent = false;
  await after(fleet, 1_000, [first]);
  expect([first.running.length, one.running.length]).toEqual([0, 32]);
});

test("a process that shares from now on counts what it runs already", async () => {
  const fleet = new Fleet({ common: 8, reserved: 0 });
  const one = fleet.join();
  await after(fleet, 4_000, []);
  const other = fleet.join();
  other.running = Array.from({ length: 6 }, () => ({ part: "common", ends_ms: fleet.now_ms + 2_000 }) as const);
  await fleet.exchange(one);
  one.running = [];
  await fleet.exchange(other);
  // The first process returns the slots that it does not need.
  await fleet.exchange(one);
  await fleet.exchange(one);
  expect(whole(one.share.most(fleet.now_ms))).toBeLessThanOrEqual(2);
  expect((await after(fleet, 3_000, [one, other])).toSorted()).toEqual([4, 4]);
});

test("an idle fleet has the even share of each at hand when Redis falls silent", async () => {
  const fleet = new Fleet({ common: 32, reserved: 0 });
  const all = [fleet.join(), fleet.join(), fleet.join()];
  await after(fleet, 4_000, []);
  fleet.isSilent = true;
  expect(await after(fleet, 5_000, all)).toEqual([10, 10, 10]);
});

test("a process that was frozen past its lease begins nothing until Redis has answered", async () => {
  const fleet = new Fleet({ common: 8, reserved: 0 });
  const [one, other] = [fleet.join(), fleet.join()];
  await after(fleet, 5_000, [one, other]);
  one.frozenUntil_ms = fleet.now_ms + 10_100;
  expect(await after(fleet, 10_000, [one, other])).toEqual([4, 8]);
  expect(whole(one.share.most(fleet.now_ms))).toBe(0);
  // The process does not get its even share of slots either, because its next exchange with Redis fails.
  await fleet.exchange(one, true);
  expect(whole(one.share.most(fleet.now_ms))).toBe(0);
  // The process does not keep its earlier slots either, although Redis responds before the process knows that its
  // requests have ended.
  await fleet.exchange(one);
  fleet.end(one);
  fleet.begin(one, 400);
  expect(one.running).toEqual([]);
});

test("an exchange that comes late, after another of the same process, changes nothing", async () => {
  const fleet = new Fleet({ common: 8, reserved: 0 });
  const one = fleet.join();
  await after(fleet, 4_000, [one]);
  const late = one.share.ask({ running: { common: 0, reserved: 0 }, waiting: endless, weight: 1 }, fleet.now_ms);
  await fleet.exchange(one);
  await expect(
    fleet.store.exchange(`${fleet.engine} 0`, { ...late, held: { common: 0, reserved: 0 } }),
  ).rejects.toThrow();
  const other = fleet.join();
  await fleet.exchange(other);
  expect(whole(other.share.most(fleet.now_ms))).toBe(0);
});

test("the smallest limit holds while processes are configured differently, and a new one soon after all have it", async () => {
  const fleet = new Fleet({ common: 32, reserved: 0 });
  const all = [fleet.join(), fleet.join()];
  await after(fleet, 4_000, all);
  all[0]!.share.limits = { common: 8, reserved: 0 };
  expect(sum(await after(fleet, 1_000, all))).toBe(8);
  all[1]!.share.limits = { common: 8, reserved: 0 };
  for (const one of all) one.share.limits = { common: 20, reserved: 4 };
  expect(sum(await after(fleet, 1_000, all))).toBe(20);
});

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

test("the reserve is the fleet's too: one process may have all of it", async () => {
  const fleet = new Fleet({ common: 10, reserved: 4 });
  const [one, other] = [fleet.join(), fleet.join()];
  await after(fleet, 4_000, [one, other]);
  for (let step = 0; step < 8; step++) {
    one.waiting = { common: 100, reserved: 4 - one.use.running.reserved };
    other.waiting = endless;
    await fleet.step(() => 400);
  }
  expect(one.use.running.reserved).toBe(4);
  expect(fleet.atEngine()).toBeLessThanOrEqual(14);
});

test("a process where more organizations wait has more, by their weights", async () => {
  const fleet = new Fleet({ common: 12, reserved: 0 });
  const [one, other] = [fleet.join(), fleet.join()];
  Object.defineProperty(one, "use", {
    get: () => ({ running: { common: one.running.length, reserved: 0 }, waiting: one.waiting, weight: 3 }),
  });
  expect(await after(fleet, 6_000, [one, other])).toEqual([9, 3]);
});
