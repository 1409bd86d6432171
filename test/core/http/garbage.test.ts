/**
 * Garbage of large bodies is collected: at once after a large body was translated, and soon after requests with large
 * bodies have ended.
 */
import { expect, test } from "bun:test";
import { garbage } from "../../../src/core/http/garbage.ts";
import { until } from "../../harness/until.ts";

const settings = {
  large_bytes: 10,
  ended_bytes: 30,
  old_ms: 1000,
  old_min: 4,
  old_rest: 200,
  wait_ms: 1,
  open_max: 50,
  budget: { burst: 1, per_second: 0 },
};

function counted() {
  let count = 0;
  let countOfNew = 0;
  return {
    ...garbage({ collect: () => void count++, collectNew: () => void countOfNew++ }, settings, () => 0),
    count: () => count,
    countOfNew: () => countOfNew,
  };
}

/** A clock that advances only during collections, each of which takes 5 ms. */
function timed() {
  const clock = { now_ms: 0 };
  const collected: number[] = [];
  const collect = () => {
    collected.push(clock.now_ms);
    clock.now_ms += 5;
  };
  const made = (changed: Partial<typeof settings>) =>
    garbage({ collect, collectNew() {} }, { ...settings, ...changed }, () => clock.now_ms);
  return { clock, collected, made };
}

test("a burst is collected at once, and then a twentieth of the time at most; the last body is not forgotten", async () => {
  const { clock, collected, made } = timed();
  const left = made({ old_ms: 0, old_min: 9, open_max: 0, budget: { burst: 50, per_second: 50 } });
  for (let body = 0; body < 10; body++) left.translated(10);
  expect(collected).toHaveLength(10);
  const burst_ms = clock.now_ms;
  while (clock.now_ms < 2000) {
    left.translated(10);
    clock.now_ms += 1;
  }
  const later = collected.length - 10;
  expect(later * 5).toBeLessThanOrEqual((clock.now_ms - burst_ms) / 20 + 5);
  expect(later).toBeGreaterThan(10);
  const before = collected.length;
  await until(() => collected.length === before + 1);
});

test("a large body is collected when it was translated, a small one never", () => {
  const left = counted();
  left.translated(9);
  expect(left.count()).toBe(0);
  left.translated(10);
  expect(left.count()).toBe(1);
});

test("of requests that end, large ones count, and what comes together is collected once", async () => {
  const left = counted();
  for (let ended = 0; ended < 100; ended++) left.ended(9);
  left.ended(20);
  await Bun.sleep(5);
  expect(left.count()).toBe(0);
  for (let ended = 0; ended < 10; ended++) left.ended(20);
  await until(() => left.count() > 0);
  await Bun.sleep(5);
  expect(left.count()).toBe(1);
});

test("what ends after a collection is counted from nothing", async () => {
  const left = counted();
  left.ended(30);
  await until(() => left.count() === 1);
  left.ended(29);
  await Bun.sleep(5);
  expect(left.count()).toBe(1);
  left.ended(10);
  await until(() => left.count() === 2);
});

test("what small requests have left is collected as time passes: where any has ended, and few are open", () => {
  const left = counted();
  left.passed(0);
  expect(left.count()).toBe(0);
  left.ended(1);
  left.passed(51);
  expect(left.count()).toBe(0);
  left.passed(50);
  expect(left.count()).toBe(1);
  left.passed(0);
  expect(left.count()).toBe(1);
  left.ended(1);
  left.passed(0);
  expect(left.count()).toBe(2);
});

test("while many are open, what is new is looked through each time, whether any has ended or not", () => {
  const left = counted();
  left.ticked(50);
  expect(left.countOfNew()).toBe(0);
  for (let second = 1; second <= 3; second++) {
    left.ticked(51);
    expect(left.countOfNew()).toBe(second);
  }
  expect(left.count()).toBe(0);
});

test("what long requests have left is collected when as many have ended as are open, and a few at least", async () => {
  const left = counted();
  for (let ended = 0; ended < 100; ended++) left.lived(999, 0);
  for (let ended = 0; ended < 3; ended++) left.lived(1000, 0);
  await Bun.sleep(5);
  expect(left.count()).toBe(0);
  left.lived(1000, 0);
  await until(() => left.count() === 1);
  for (let ended = 0; ended < 9; ended++) left.lived(1000, 10);
  await Bun.sleep(5);
  expect(left.count()).toBe(1);
  left.lived(1000, 10);
  await until(() => left.count() === 2);
});

test("for what long requests have left, a node stands still for 1 of 200 parts of its time at most", async () => {
  const { clock, collected, made } = timed();
  const left = made({ wait_ms: 0, budget: { burst: 1000, per_second: 50 } });
  const several = () => {
    for (let ended = 0; ended < 10; ended++) left.lived(1000, 4);
  };
  several();
  await until(() => collected.length === 1);
  for (; clock.now_ms < 1004; clock.now_ms += 1) several();
  await Bun.sleep(5);
  expect(collected).toEqual([0]);
  clock.now_ms += 1;
  several();
  await until(() => collected.length === 2);
});
