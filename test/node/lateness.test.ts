/**
 * A process measures how late its timers run, ten times a second. Code can read the value, and the process reports it
 * at each measurement.
 */
import { expect, test } from "bun:test";
import { Lateness } from "../../src/node/lateness.ts";
import { VirtualClock } from "../core/admission/virtual-time.ts";

test("a process that stood still was late for as long as its beat was due, and is on time after it", async () => {
  const clock = new VirtualClock();
  const told: number[] = [];
  const lateness = new Lateness(clock, (ms) => told.push(ms));
  await clock.advance(1_000);
  expect([told, lateness.total_ms()]).toEqual([Array(10).fill(0), 0]);
  clock.freeze(350);
  expect(lateness.total_ms()).toBe(250);
  await clock.advance(0);
  expect([told.at(-1), lateness.total_ms()]).toEqual([250, 250]);
  await clock.advance(1_050);
  expect([told.length, told.at(-1), lateness.total_ms()]).toEqual([22, 0, 250]);
  lateness.stop();
  expect(clock.timers).toBe(0);
});
