/**
 * The ledger's totals are compared with its records periodically, and the metric shows the result of the last check.
 */
import { expect, test } from "bun:test";
import { bookCheck } from "../../../src/features/upkeep/book-check.ts";
import type { Audit, LedgerDifference } from "../../../src/features/upkeep/store/books.ts";
import { until } from "../../harness/until.ts";

const wrong: LedgerDifference = {
  organizationId: "org_1",
  subjectId: null,
  kind: "week",
  startsAt: new Date(),
  ...{ used: 5, recorded: 4, held: 0, holding: 0 },
};

test("differences are told and counted, a failure is told and changes nothing, and a book that is right again counts none", async () => {
  const looks: (() => Audit)[] = [
    () => ({ differences: [wrong], differing: 1, sealsBehind: 3 }),
    () => {
      throw new Error("the store is away");
    },
    // This result stands for that of a check by another node.
    () => ({ differences: [], differing: 2, sealsBehind: 4 }),
    () => ({ differences: [], differing: 0, sealsBehind: 0 }),
  ];
  const found: LedgerDifference[][] = [];
  const failures: unknown[] = [];
  const seen: [number, number][] = [];
  let rolled = 0;
  const checks = bookCheck({
    ledger: {
      async audit() {
        seen.push([checks.differences(), checks.sealsBehind()]);
        return (looks[Math.min(seen.length, looks.length) - 1] as () => Audit)();
      },
      async rollUp() {
        rolled += 1;
        if (rolled === 1) throw new Error("the store is away");
      },
    },
    found: (differences) => found.push(differences),
    failed: (cause) => failures.push(cause),
    times_ms: { first: 1, every: 1, rolls: 1 },
  });
  expect(checks.differences()).toBeNaN();
  await until(() => seen.length >= 5 && rolled >= 2, 5_000, "five looks, and two passes");
  await checks.stop();
  expect(seen.slice(0, 5)).toEqual([
    [Number.NaN, Number.NaN],
    [1, 3],
    [1, 3],
    [2, 4],
    [0, 0],
  ]);
  expect(found).toEqual([[wrong]]);
  expect(failures).toHaveLength(2);
});
