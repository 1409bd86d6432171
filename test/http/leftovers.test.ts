/** What large bodies leave behind is collected: at once where it is in the way, and soon after they have ended. */
import { expect, test } from "bun:test";
import { leftovers } from "../../src/http/leftovers.ts";
import { until } from "../harness/until.ts";

function counted() {
  let count = 0;
  const settings = { large_bytes: 10, ended_bytes: 30, wait_ms: 1, rests: 20 };
  return {
    ...leftovers(
      () => void count++,
      settings,
      () => 0,
    ),
    count: () => count,
  };
}

test("collections that take long are far apart: a twentieth of the time at most, and the last body's is not forgotten", async () => {
  let now_ms = 0;
  const collected: number[] = [];
  const collect = () => {
    collected.push(now_ms);
    now_ms += 5;
  };
  const settings = { large_bytes: 10, ended_bytes: 30, wait_ms: 1, rests: 20 };
  const left = leftovers(collect, settings, () => now_ms);
  for (let body = 0; body < 300; body++) {
    left.translated(10);
    now_ms += 1;
  }
  expect(collected.length).toBeLessThanOrEqual(3);
  for (const [index, at_ms] of collected.slice(1).entries())
    expect(at_ms - collected[index]!).toBeGreaterThanOrEqual(105);
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
