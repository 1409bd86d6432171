// A deadline limits the other side, which is asked, and not this process: time in which this process itself stood still
// does not count.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Countdown } from "../../../src/core/time/cancellation.ts";
import { VirtualClock } from "../admission/virtual-time.ts";

function counted(wait_ms: number) {
  const clock = new VirtualClock();
  const began_ms = clock.now_ms();
  const ends: number[] = [];
  const countdown = new Countdown(() => ends.push(clock.now_ms() - began_ms), clock);
  countdown.set(wait_ms);
  return { clock, countdown, ends };
}

describe("a countdown", () => {
  test("ends when its time is over, once", async () => {
    const { clock, ends } = counted(1000);
    await clock.advance(999);
    expect(ends).toEqual([]);
    await clock.advance(1);
    expect(ends).toEqual([1000]);
    await clock.advance(60_000);
    expect([ends, clock.timers]).toEqual([[1000], 0]);
  });

  test("that is stopped never ends, and keeps no timer", async () => {
    const { clock, countdown, ends } = counted(1000);
    countdown.stop();
    await clock.advance(5000);
    expect([ends, clock.timers]).toEqual([[], 0]);
  });

  test("that is set again ends by the last word, earlier or later, and has one timer", async () => {
    const { clock, countdown, ends } = counted(1000);
    await clock.advance(600);
    countdown.set(1000);
    expect(clock.timers).toBe(1);
    await clock.advance(999);
    expect(ends).toEqual([]);
    countdown.set(100);
    expect(clock.timers).toBe(1);
    await clock.advance(100);
    expect(ends).toEqual([1699]);
  });

  test("that is set to an earlier end has one timer, and ends then", async () => {
    const { clock, countdown, ends } = counted(60_000);
    countdown.set(1000);
    expect(clock.timers).toBe(1);
    await clock.advance(60_000);
    expect([ends, clock.timers]).toEqual([[1000], 0]);
  });

  test("that is set later and later needs no timer for each", async () => {
    const { clock, countdown } = counted(30_000);
    let timers = 0;
    const after = clock.after.bind(clock);
    clock.after = (delay_ms, run) => {
      timers += 1;
      return after(delay_ms, run);
    };
    for (let token = 0; token < 1000; token++) {
      await clock.advance(10);
      countdown.set(30_000);
    }
    expect(timers).toBeLessThan(5);
  });

  test("a stop of the process, however long, leaves most of the time", async () => {
    const { clock, ends } = counted(1000);
    clock.freeze(60_000);
    await clock.advance(500);
    expect(ends).toEqual([]);
    await clock.advance(500);
    expect(ends).toHaveLength(1);
  });

  test("what has arrived when the time is over is read first, even if that takes a few turns", async () => {
    const { clock, countdown, ends } = counted(8);
    const turn = () => new Promise<void>((resolve) => void clock.after(0, resolve));
    const arrival = new Promise<void>((resolve) => void clock.after(8, resolve));
    const read = arrival.then(turn).then(() => countdown.set(1000));
    await clock.advance(8);
    await read;
    expect(ends).toEqual([]);
    await clock.advance(1000);
    expect(ends).toEqual([1008]);
  });

  test("that is set again when it was nearly over gives the same turns to what arrives at its new end", async () => {
    const { clock, countdown, ends } = counted(8);
    const turns = async (count: number) => {
      for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => void clock.after(0, resolve));
    };
    const setAt = async (at_ms: number) => {
      await new Promise<void>((resolve) => void clock.after(at_ms, resolve));
      await turns(3);
      countdown.set(8);
    };
    const both = setAt(8).then(() => setAt(8));
    await clock.advance(8);
    await clock.advance(8);
    await both;
    expect(ends).toEqual([]);
    await clock.advance(8);
    expect(ends).toEqual([24]);
  });

  test("comes to its end whatever the process does: after twenty of its times, and all stops, at most", () => {
    const stops = fc.array(fc.record({ run_ms: fc.nat(400), stop_ms: fc.nat(3000) }), { maxLength: 40 });
    return fc.assert(
      fc.asyncProperty(fc.integer({ min: 20, max: 1000 }), stops, async (wait_ms, steps) => {
        const { clock, ends } = counted(wait_ms);
        for (const { run_ms, stop_ms } of steps) {
          await clock.advance(run_ms);
          clock.freeze(stop_ms);
        }
        await clock.advance(20 * wait_ms);
        expect(ends).toHaveLength(1);
        expect(ends[0]).toBeGreaterThanOrEqual(wait_ms);
      }),
      { numRuns: 60 },
    );
  });
});
