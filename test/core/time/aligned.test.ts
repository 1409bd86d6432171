/** The repeated jobs of a process share their wake-ups, and keep their intervals. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { alignedClock, type Clock, repeating } from "../../../src/core/time/clock.ts";
import { VirtualClock } from "../admission/virtual-time.ts";

/**
 * An aligned clock, and the instants at which its timers fire. A timer fires at a whole millisecond after it was set,
 * like the runtime's timers.
 */
function watched() {
  const clock = new VirtualClock();
  const wakes = new Set<number>();
  const exact: Clock = {
    now_ms: () => clock.now_ms(),
    after: (delay_ms, run) =>
      clock.after(Math.floor(delay_ms), () => {
        wakes.add(clock.now_ms());
        run();
      }),
  };
  return { clock, wakes, aligned: alignedClock(exact) };
}

test("work of the same interval shares its wakes, whenever it was begun, and comes as often as it should", async () => {
  const { clock, wakes, aligned } = watched();
  const runs = new Map<string, number>();
  const begun = (name: string, every: number) =>
    repeating(async () => void runs.set(name, (runs.get(name) ?? 0) + 1), { every }, aligned);
  for (const [at, every] of [1_000, 1_000, 1_000, 200, 100].entries()) {
    begun(`${at} every ${every}`, every);
    await clock.advance(37);
  }
  await clock.advance(60_000);
  const from_ms = 1_050_000;
  expect([...wakes].filter((at_ms) => at_ms >= from_ms && at_ms < from_ms + 10_000).length).toBe(100);
  for (const [name, count] of runs) {
    const wanted = 60_000 / Number(name.split(" ").at(-1));
    expect([name, Math.abs(count - wanted) <= 1]).toEqual([name, true]);
  }
});

test("a wait ends at most half a step sooner or later, and a short one is exact", () => {
  fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 5_000 }), fc.integer({ min: 0, max: 1_500 }), async (delay, before) => {
      const { clock, aligned } = watched();
      await clock.advance(before);
      const began_ms = clock.now_ms();
      let ended_ms = Number.NaN;
      aligned.after(delay, () => {
        ended_ms = clock.now_ms();
      });
      await clock.advance(10_000);
      const slack_ms = delay >= 1_000 ? 500 : delay >= 100 ? 50 : 0;
      expect(Math.abs(ended_ms - began_ms - delay)).toBeLessThanOrEqual(slack_ms);
    }),
  );
});
