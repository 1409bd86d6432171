/** The metrics that a process reports about itself. */
import { expect, test } from "bun:test";
import { watchProcess } from "../../../src/features/telemetry/process.ts";
import { instruments } from "../../../src/features/telemetry/registry.ts";

test("how late its timers were is told since the last look alone", () => {
  const made = instruments();
  const { late } = watchProcess(made, null);
  const told = () => {
    const { values } = made.values().find(({ name }) => name === "process_event_loop_delay_seconds")!;
    return Object.fromEntries(values.map(({ labels, value }) => [labels.statistic!, value]));
  };
  expect(told()).toEqual({ mean: 0, p99: 0, max: 0 });
  for (let beats = 0; beats < 9; beats++) late(0);
  late(500);
  const { mean, p99, max } = told();
  expect([mean, p99, max].map((value) => Math.round(value! * 100))).toEqual([5, 50, 50]);
  expect(told()).toEqual({ mean: 0, p99: 0, max: 0 });
});
