// Amounts of money in the form in which people read them.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { counted, grouped, percentOf } from "../../../src/core/inference/money.ts";
import { forAll } from "../protocol/for-all.ts";

test("numbers are grouped, and one thing is one", () => {
  expect([grouped(0), grouped(999), grouped(12_345_678), grouped(1e15)]).toEqual([
    "0",
    "999",
    "12,345,678",
    "1,000,000,000,000,000",
  ]);
  expect([counted(0, "request"), counted(1, "request"), counted(2000, "token")]).toEqual([
    "0 requests",
    "1 request",
    "2,000 tokens",
  ]);
});

test("percent is rounded down to two decimals, at most 100, and 100 only when nothing is left", () => {
  expect(percentOf(5, null)).toBe(0);
  expect(percentOf(0, 7)).toBe(0);
  expect(percentOf(1, 3)).toBe(33.33);
  expect(percentOf(12_926_880, 100_000_000)).toBe(12.92);
  expect(percentOf(1e15 - 1, 1e15)).toBe(99.99);
  expect(percentOf(1e15, 1e15)).toBe(100);
  expect(percentOf(2e15, 1e15)).toBe(100);
  forAll([fc.integer({ min: 1, max: 1e15 }), fc.integer({ min: 0, max: 2e15 })], 2000, (limit, used) => {
    const percent = percentOf(used, limit);
    expect(percent === 100).toBe(used >= limit);
    expect(String(percent)).toMatch(/^\d{1,3}(\.\d{1,2})?$/);
  });
});
