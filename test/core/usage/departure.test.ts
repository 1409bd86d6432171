/**
 * An answer that was requested from its engine unstreamed may finish after its caller has disconnected: for ten
 * seconds, unless something else ends it.
 */
import { expect, test } from "bun:test";
import { Fault } from "../../../src/core/inference/fault.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import { finish_ms, finishing } from "../../../src/core/usage/departure.ts";
import { VirtualClock } from "../admission/virtual-time.ts";

const left = new Fault("internal_error", "the caller left");
const drained = new Fault("draining", "the service restarts");

function bench() {
  const clock = new VirtualClock();
  const [signal, halted] = [new Cancellation(), new Cancellation()];
  const engine = { isWell: true };
  const finish = finishing({ signal, halted }, clock, () => engine.isWell);
  return { clock, signal, halted, engine, finish };
}

test("while its caller waits, no time ends it", async () => {
  const { clock, finish } = bench();
  await clock.advance(100 * finish_ms);
  expect(finish.signal.aborted).toBe(false);
});

test("it has ten seconds from the departure", async () => {
  const { clock, signal, finish } = bench();
  signal.abort(left);
  await clock.advance(9_999);
  expect(finish.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(finish.signal.reason).toBe(left);
});

test("what the service ends is ended at once, whether its caller is there, has left, or leaves then", async () => {
  for (const departs of [null, "before", "after"]) {
    const { clock, signal, halted, finish } = bench();
    if (departs === "before") signal.abort(left);
    halted.abort(drained);
    if (departs === "after") signal.abort(left);
    expect(finish.signal.reason).toBe(drained);
    finish.stop();
    expect(clock.timers).toBe(0);
  }
});

test("an engine that is ill is not waited for: not at the departure, and not later", async () => {
  const { clock, signal, engine, finish } = bench();
  signal.abort(left);
  await clock.advance(2_500);
  engine.isWell = false;
  await clock.advance(1_000);
  expect(finish.signal.reason).toBe(left);
  const other = bench();
  other.engine.isWell = false;
  other.signal.abort(left);
  expect(other.finish.signal.aborted).toBe(true);
});

test("where the attempt is over, nothing is left of it", async () => {
  const { clock, signal, finish } = bench();
  signal.abort(left);
  finish.stop();
  expect(clock.timers).toBe(0);
  const unleft = bench();
  unleft.finish.stop();
  unleft.signal.abort(left);
  expect(unleft.clock.timers).toBe(0);
});
