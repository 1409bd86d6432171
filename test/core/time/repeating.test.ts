/** Repeated work: no two runs overlap, and none starts after a stop. */
import { expect, test } from "bun:test";
import { repeating } from "../../../src/core/time/clock.ts";
import { settled, VirtualClock } from "../admission/virtual-time.ts";

function working() {
  const clock = new VirtualClock();
  const begun: PromiseWithResolvers<void>[] = [];
  const work = () => {
    const one = Promise.withResolvers<void>();
    begun.push(one);
    return one.promise;
  };
  return { clock, begun, repeated: repeating(work, { first: 10, every: 1_000 }, clock) };
}

test("the wait for the next time begins when the last has ended", async () => {
  const { clock, begun } = working();
  await clock.advance(9);
  expect(begun).toHaveLength(0);
  await clock.advance(10_000);
  expect(begun).toHaveLength(1);
  begun[0]!.resolve();
  await clock.advance(999);
  expect(begun).toHaveLength(1);
  await clock.advance(1);
  expect(begun).toHaveLength(2);
});

test("a stop waits for what is under way, and nothing comes after it", async () => {
  const { clock, begun, repeated } = working();
  await clock.advance(10);
  let hasStopped = false;
  const stopping = repeated.stop().then(() => {
    hasStopped = true;
  });
  await settled();
  expect(hasStopped).toBe(false);
  begun[0]!.resolve();
  await stopping;
  await clock.advance(60_000);
  expect([begun.length, clock.timers]).toEqual([1, 0]);
});

test("a stop between two times leaves no timer, and the work is not begun again", async () => {
  const { clock, begun, repeated } = working();
  await clock.advance(10);
  begun[0]!.resolve();
  await clock.advance(500);
  await repeated.stop();
  expect(clock.timers).toBe(0);
  await clock.advance(60_000);
  expect(begun).toHaveLength(1);
});
