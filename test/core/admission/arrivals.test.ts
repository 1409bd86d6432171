/**
 * The rate of a key's requests before their bodies are read: refused requests count, and an honest client never
 * notices.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { arrivals, arrivalsPerMinute_min } from "../../../src/core/admission/arrivals.ts";
import { Fault } from "../../../src/core/inference/fault.ts";

const plan = (requestsPerMinute: number | null) => ({ requestsPerMinute });

/** Makes `of` calls of `taking` at once, and returns how many of them pass without a Fault. */
function passed(taking: () => void, of: number): number {
  let count = 0;
  for (let one = 0; one < of; one++) {
    try {
      taking();
      count += 1;
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(Fault);
    }
  }
  return count;
}

describe("arrivals", () => {
  test("ten times the plan's requests a minute pass, and 600 at least; a count has a bucket of its own", () => {
    const limited = arrivals(() => 0);
    expect(passed(() => limited.take("a", "inference", plan(60)), 1000)).toBe(600);
    expect(passed(() => limited.take("b", "inference", plan(5)), 1000)).toBe(600);
    expect(passed(() => limited.take("c", "inference", plan(120)), 2000)).toBe(1200);
    expect(passed(() => limited.take("a", "count", plan(60)), 2000)).toBe(arrivalsPerMinute_min.count);
    expect(passed(() => limited.take("d", "inference", undefined), 1000)).toBe(600);
    expect(passed(() => limited.take("e", "inference", plan(null)), 10_000)).toBe(10_000);
    expect(passed(() => limited.take("e", "count", plan(null)), 2000)).toBe(arrivalsPerMinute_min.count);
  });

  test("the refusal says when to come back, and then one passes", () => {
    let now = 0;
    const limited = arrivals(() => now);
    const take = () => limited.take("a", "inference", plan(60));
    passed(take, 600);
    expect(take).toThrow(expect.objectContaining({ code: "rate_limit_exceeded", details: { retryAfterSeconds: 1 } }));
    now += 1000;
    expect(passed(take, 100)).toBe(10);
  });

  test("whatever the pace, no minute lets more than twice the limit pass", () => {
    const pauses = fc.array(fc.tuple(fc.integer({ min: 0, max: 20_000 }), fc.integer({ min: 1, max: 900 })), {
      maxLength: 20,
    });
    fc.assert(
      fc.property(pauses, (waves) => {
        let now = 0;
        const limited = arrivals(() => now);
        const taken: { at: number; count: number }[] = [];
        for (const [pause, size] of waves) {
          now += pause;
          taken.push({ at: now, count: passed(() => limited.take("a", "inference", plan(1)), size) });
        }
        for (const { at } of taken) {
          const minute = taken.filter((wave) => wave.at > at - 60_000 && wave.at <= at);
          expect(minute.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(1200);
        }
      }),
      { numRuns: 50 },
    );
  });
});
