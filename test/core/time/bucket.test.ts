import { expect, test } from "bun:test";
import fc from "fast-check";
import { Bucket } from "../../../src/core/time/bucket.ts";

test("a burst passes, and then so many a second", () => {
  const bucket = new Bucket({ burst: 3, per_second: 2 }, 0);
  const taken = (now_ms: number, tries: number) => Array.from({ length: tries }, () => bucket.take(now_ms));
  expect(taken(0, 4)).toEqual([true, true, true, false]);
  expect(taken(499, 1)).toEqual([false]);
  expect(taken(500, 2)).toEqual([true, false]);
  expect(taken(60_000, 4)).toEqual([true, true, true, false]);
});

test("what is given back can be taken again, and never makes more than a burst", () => {
  const bucket = new Bucket({ burst: 1, per_second: 1 }, 0);
  bucket.giveBack();
  expect([bucket.take(0), bucket.take(0)]).toEqual([true, false]);
  bucket.giveBack();
  expect(bucket.take(0)).toBe(true);
});

test("it says how long to wait, in whole seconds", () => {
  const bucket = new Bucket({ burst: 1, per_second: 0.25 }, 0);
  bucket.take(0);
  expect(bucket.waitSeconds(0)).toBe(4);
  expect(bucket.waitSeconds(3500)).toBe(1);
});

test("what was needed beyond what there was is waited for", () => {
  const bucket = new Bucket({ burst: 2, per_second: 1 }, 0);
  bucket.spend(5, 0);
  expect(bucket.take(3000)).toBe(false);
  expect(bucket.waitSeconds(3000)).toBe(1);
  expect(bucket.take(4000)).toBe(true);
});

test("whatever is asked when, no span of time gets more than the burst and its rate", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -50, max: 400 }), { maxLength: 200 }),
      fc.integer({ min: 1, max: 10 }),
      fc.integer({ min: 1, max: 50 }),
      (steps, burst, per_second) => {
        const bucket = new Bucket({ burst, per_second }, 0);
        let now = 0;
        let latest = 0;
        let taken = 0;
        // A clock that steps back adds no tokens to the bucket.
        for (const step of steps) {
          now += step;
          latest = Math.max(latest, now);
          if (bucket.take(now)) taken++;
        }
        return taken <= burst + (latest * per_second) / 1000 + 1e-6;
      },
    ),
  );
});
