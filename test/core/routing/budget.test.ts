/**
 * Retries do not multiply an outage: attempts beyond the first are at most a fifth of the last minute's requests, or
 * twenty if that is more.
 */
import { expect, test } from "bun:test";
import { retryBudget, retryBudgets } from "../../../src/core/routing/after.ts";

function taken(budget: ReturnType<typeof retryBudget>, now_ms: number): number {
  let count = 0;
  while (count < 10_000 && budget.take(now_ms)) count += 1;
  return count;
}

test("twenty in a quiet minute", () => expect(taken(retryBudget(), 0)).toBe(20));

test("a fifth of many", () => {
  const budget = retryBudget();
  for (let request = 0; request < 1000; request++) budget.offered(request * 50);
  expect(taken(budget, 50_000)).toBe(200);
  expect(taken(budget, 50_001)).toBe(0);
});

test("what is a minute old counts no more", () => {
  const budget = retryBudget();
  for (let request = 0; request < 1000; request++) budget.offered(0);
  expect(taken(budget, 1)).toBe(200);
  expect(taken(budget, 61_000)).toBe(20);
});

test("models do not share it", () => {
  const budget = retryBudgets();
  taken(budget("acme/one"), 0);
  expect(taken(budget("acme/two"), 0)).toBe(20);
  expect(taken(budget("acme/one"), 0)).toBe(0);
});
