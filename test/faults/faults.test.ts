/**
 * Whatever is killed, frozen, flushed or cut: one record for each admitted request, none lost, none doubled, no hold left,
 * nobody past a limit. `npm run faults -- --rounds N --seed S` does as many as you like.
 */
import { expect, test } from "bun:test";
import { faultRun } from "./round.ts";

test("a hundred injuries on three nodes under load break no promise", async () => {
  const run = await faultRun({ seed: 20261121, injuries: 100, clients: 16, gap_ms: 250, plan: { session: 3_000_000 } });
  expect(run.verdict.broken.slice(0, 20)).toEqual([]);
  expect(run.verdict.answered).toBeGreaterThan(50);
  expect([...run.injuries.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(100);
}, 400_000);
