/**
 * The upkeep of the ledger's tables runs periodically. Postponed work is reported, and the metric shows for how many
 * months ahead there are partitions.
 */
import { expect, test } from "bun:test";
import { bookUpkeep } from "../../../src/features/upkeep/book-upkeep.ts";
import type { Upkeep } from "../../../src/features/upkeep/store/books.ts";
import { until } from "../../harness/until.ts";

test("months ahead are known after each round, also of work that failed; what was put off is told", async () => {
  const rounds: (Upkeep | null)[] = [
    { monthsAhead: 5, putOff: ["a month"] },
    null,
    { monthsAhead: 4, putOff: [], failure: new Error("permission denied") },
    { monthsAhead: 6, putOff: [] },
  ];
  const seen: number[] = [];
  const putOff: string[][] = [];
  const failures: unknown[] = [];
  const upkeep = bookUpkeep({
    ledger: {
      async maintain() {
        seen.push(upkeep.monthsAhead());
        const round = rounds[Math.min(seen.length, rounds.length) - 1];
        if (!round) throw new Error("the store is away");
        return round;
      },
    },
    putOff: (what) => putOff.push(what),
    failed: (cause) => failures.push(cause),
    times_ms: { first: 1, every: 1 },
  });
  expect(upkeep.monthsAhead()).toBeNaN();
  await until(() => seen.length >= 5, 5_000, "five rounds");
  await upkeep.stop();
  expect(seen.slice(0, 5)).toEqual([Number.NaN, 5, 5, 4, 6]);
  expect(putOff).toEqual([["a month"]]);
  expect(failures.map(String)).toEqual(["Error: the store is away", "Error: permission denied"]);
});
