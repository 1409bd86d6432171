/**
 * Whatever is killed, frozen, flushed or cut off, the ledger has exactly one record for each admitted request, no hold
 * stays open, and no limit is exceeded. `npm run test:deep` injects a hundred faults (called injuries), and `npm run
 * faults -- --rounds N --seed S` any number of them.
 */
import { expect, test } from "bun:test";
import { isDeep, seed, times } from "../harness/depth.ts";
import { faultRun } from "./round.ts";

const injuries = times(12, 100);

test(`${injuries} injuries on three nodes under load break no promise`, async () => {
  const run = await faultRun({ seed, injuries, clients: 16, gap_ms: 250, plan: { session: 3_000_000 } });
  expect({ seed, broken: run.verdict.broken.slice(0, 20) }).toEqual({ seed, broken: [] });
  // With few injected faults, some seeds have no client that repeats the request of a complete response.
  if (isDeep) expect(run.kept.replays).toBeGreaterThan(0);
  expect(run.kept.background).toBeGreaterThan(0);
  expect(run.verdict.answered).toBeGreaterThan(injuries / 2);
  expect([...run.injuries.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(injuries);
}, 400_000);
