/** The book is looked at again and again, and whoever reads the metric knows what the last look found. */
import { expect, test } from "bun:test";
import type { LedgerDifference } from "../../src/store/ledger.ts";
import { bookCheck } from "../../src/usage/book-check.ts";
import { until } from "../harness/until.ts";

const wrong: LedgerDifference = {
  organizationId: "org_1",
  kind: "week",
  startsAt: new Date(),
  ...{ used: 5, recorded: 4, held: 0, holding: 0 },
};

test("differences are told and counted, a failure is told and changes nothing, and a book that is right again counts none", async () => {
  const looks: (() => LedgerDifference[])[] = [
    () => [wrong],
    () => {
      throw new Error("the store is away");
    },
    () => [],
  ];
  const hours: (number | undefined)[] = [];
  const found: LedgerDifference[][] = [];
  const failures: unknown[] = [];
  const seen: number[] = [];
  const checks = bookCheck({
    ledger: {
      async check(recent_hours) {
        hours.push(recent_hours);
        seen.push(checks.differences());
        return (looks[Math.min(hours.length, looks.length) - 1] as () => LedgerDifference[])();
      },
    },
    found: (differences) => found.push(differences),
    failed: (cause) => failures.push(cause),
    times_ms: { first: 1, every: 1 },
  });
  expect(checks.differences()).toBeNaN();
  await until(() => seen.length >= 4, 2_000, "four looks");
  await checks.stop();
  expect(seen.slice(0, 4)).toEqual([Number.NaN, 1, 1, 0]);
  expect(found).toEqual([[wrong]]);
  expect(failures).toHaveLength(1);
  // Every session is seen whole once: five hours, and an hour to the next look.
  expect(hours[0]).toBe(6);
});
