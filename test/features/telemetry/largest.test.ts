/**
 * The list of the organizations with the largest usage is short and exact, and the usage of all others is summed up
 * completely, in whatever order organizations appear.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { largest } from "../../../src/features/telemetry/largest.ts";

const minute_ms = 60_000;
const largestOf = (count: number, now_ms = () => 0) => largest(() => count, now_ms, "other");

test("the largest by nanos of the last hour, and the others together", () => {
  let now_ms = 0;
  const told = largestOf(2, () => now_ms);
  told.add("old", 1_000);
  now_ms = 61 * minute_ms;
  told.add("a", 5);
  told.add("b", 7);
  told.add("c", 3);
  now_ms += 10 * minute_ms;
  told.add("a", 5);
  expect(told.read()).toEqual([
    { organization: "a", nanos: 10, requests: 2 },
    { organization: "b", nanos: 7, requests: 1 },
    { organization: "other", nanos: 3, requests: 1 },
  ]);
  now_ms += 70 * minute_ms;
  expect(told.read()).toEqual([{ organization: "other", nanos: 0, requests: 0 }]);
});

test("none is told where none may be", () => {
  const told = largestOf(0);
  told.add("a", 5);
  expect(told.read()).toEqual([]);
});

test("however many come, the sum is what was used, and no more are told than may be", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(9_000), fc.nat(1_000)), { maxLength: 20_000 }), (uses) => {
      const told = largestOf(10);
      for (const [id, nanos] of uses) told.add(`org-${id}`, nanos);
      const seen = told.read();
      expect(seen.length).toBeLessThanOrEqual(11);
      const sum = (of: (row: (typeof seen)[number]) => number) => seen.reduce((total, row) => total + of(row), 0);
      expect(sum(({ nanos }) => nanos)).toBe(uses.reduce((total, [, nanos]) => total + nanos, 0));
      expect(sum(({ requests }) => requests)).toBe(uses.length);
    }),
    { numRuns: 20 },
  );
});

test("the largest is named whoever came first, and of equal ones the one with more requests", () => {
  const told = largestOf(1);
  told.add("small", 1);
  told.add("large", 9);
  expect(told.read()[0]).toEqual({ organization: "large", nanos: 9, requests: 1 });
  told.add("small", 4);
  told.add("small", 4);
  expect(told.read()[0]).toEqual({ organization: "small", nanos: 9, requests: 3 });
});
