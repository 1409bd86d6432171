import { expect, test } from "bun:test";
import { recovery } from "../../../src/core/admission/recovery.ts";
import { admitOf } from "../store/ledger-stores.ts";
import { CutLedger, organizationId, VirtualClock } from "./virtual-time.ts";

function sweeper() {
  const clock = new VirtualClock();
  const ledger = new CutLedger(clock);
  const recovered: number[] = [];
  const failed: unknown[] = [];
  const sweeps = recovery(
    { ledger, clock, recovered: (count) => recovered.push(count), failed: (error) => failed.push(error) },
    { sweep_ms: 5_000, lease_ms: 60_000, recovered_max: 3 },
  );
  /** Checks that the only hold still exists after the first span of time, and is gone after the second. */
  const staysThenGoes = async (stays_ms: number, goes_ms: number) => {
    await clock.advance(stays_ms);
    expect(ledger.model.holds.size).toBe(1);
    await clock.advance(goes_ms);
    expect(ledger.model.holds.size).toBe(0);
  };
  return { clock, ledger, recovered, failed, sweeps, staysThenGoes };
}

test("what a node that is gone left behind is settled soon after its lease has lapsed, however much it is", async () => {
  const { clock, ledger, recovered } = sweeper();
  await clock.advance(100_000);
  ledger.model.run(Array.from({ length: 7 }, () => admitOf(organizationId)));
  await clock.advance(59_000);
  expect(ledger.model.holds.size).toBe(7);
  await clock.advance(6_000);
  expect(ledger.model.holds.size).toBe(0);
  expect(recovered).toEqual([7]);
});

test("a sweeper that has just begun, or was cut off, waits one lease: others may settle themselves", async () => {
  const { clock, ledger, failed, staysThenGoes } = sweeper();
  ledger.model.run([admitOf(organizationId, { lease_ms: 1 })]);
  await staysThenGoes(59_000, 6_000);

  ledger.wire = () => "down";
  await clock.advance(6_000);
  expect(failed.length).toBeGreaterThan(0);
  ledger.wire = () => "well";
  ledger.model.run([admitOf(organizationId, { lease_ms: 1 })]);
  await staysThenGoes(54_000, 11_000);
});

test("a sweeper waits one lease from the store's first answer, which cannot show whether the store's clock was set", async () => {
  const { clock, ledger, staysThenGoes } = sweeper();
  ledger.model.run([admitOf(organizationId)]);
  clock.freeze(30_000);
  ledger.clockIsAhead_ms = 6 * 3_600_000;
  await staysThenGoes(59_000, 6_000);
});

test("a sweeper that was frozen waits one lease as well", async () => {
  const { clock, ledger, staysThenGoes } = sweeper();
  await clock.advance(100_000);
  ledger.model.run([admitOf(organizationId)]);
  clock.freeze(61_000);
  await staysThenGoes(5_000, 65_000);
});

test("where the store's clock was set forward a sweeper waits one lease: those who run extend theirs by the new clock", async () => {
  const { clock, ledger, staysThenGoes } = sweeper();
  await clock.advance(100_000);
  ledger.model.run([admitOf(organizationId)]);
  ledger.clockIsAhead_ms = 6 * 3_600_000;
  await staysThenGoes(59_000, 11_000);
});

test("where it was set back too, and what lapses by a clock that goes right is not held up", async () => {
  const { clock, ledger, staysThenGoes } = sweeper();
  await clock.advance(100_000);
  ledger.model.run([admitOf(organizationId, { lease_ms: 1 })]);
  ledger.clockIsAhead_ms = -10_000;
  await staysThenGoes(59_000, 11_000);
  ledger.model.run([admitOf(organizationId, { lease_ms: 1 })]);
  await clock.advance(5_100);
  expect(ledger.model.holds.size).toBe(0);
});

test("a stop ends the sweeps", async () => {
  const { clock, ledger, sweeps } = sweeper();
  await clock.advance(5_000);
  await sweeps.stop();
  const before = ledger.recoveries.length;
  await clock.advance(100_000);
  expect(ledger.recoveries).toHaveLength(before);
  expect(clock.timers).toBe(0);
});
