// Sliding rates: one contract for every store that counts them, against a model that is too simple to be wrong.

import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { RateAnswer, RateLimits, RateTaken } from "../../src/store/rates.ts";
import { newHex, newRequestId } from "./ledger-stores.ts";
import { type RateStore, rateStores } from "./rates-stores.ts";

setDefaultTimeout(60_000);

/** In the middle of a second, so that shared entries end at other moments than single ones. */
const start_ms = Date.parse("2026-11-21T03:00:00.400Z");
/** What the answers of a property may cost: a store with a clock of its own is asked once for each step. */
const schedules: Record<string, number> = { memory: 1000, redis: 40, "redis cluster": 20, postgres: 12, pglite: 12 };

const newOrganizationId = () => `org_${newHex()}`;
const requestsOf = (requestsPerMinute: number): RateLimits => ({ requestsPerMinute, tokensPerMinute: null });
const tokensOf = (tokensPerMinute: number): RateLimits => ({ requestsPerMinute: null, tokensPerMinute });

for (const [name, open] of Object.entries(rateStores)) {
  describe(name, () => {
    let store: RateStore;
    let organizationId: string;
    beforeAll(async () => {
      store = await open();
    });
    afterAll(() => store.close());
    beforeEach(async () => {
      organizationId = newOrganizationId();
      await at(0);
    });

    const at = (after_ms: number) => store.setClock(start_ms + after_ms);
    const take = (limits: RateLimits, tokens = 1, owner = organizationId) =>
      store.rates.take({ organizationId: owner, requestId: newRequestId(), tokens, tokens_min: tokens, limits });
    const taken = async (limits: RateLimits, tokens = 1) => {
      const answer = await take(limits, tokens);
      expect(answer.answer).toBe("taken");
      return answer as RateTaken;
    };

    test("a request counts for the 60 seconds that follow it, and not a millisecond longer", async () => {
      await taken(requestsOf(2));
      await at(20_000);
      await taken(requestsOf(2));
      await at(59_999);
      expect(await take(requestsOf(2))).toMatchObject({ answer: "refused", limit: "requests", retry_ms: 1 });
      await at(60_000);
      await taken(requestsOf(2));
      expect(await take(requestsOf(2))).toMatchObject({ answer: "refused", retry_ms: 20_000 });
    });

    test("tokens are counted likewise, and a refusal says when there is room for that many", async () => {
      await taken(tokensOf(100), 60);
      await at(10_000);
      await taken(tokensOf(100), 30);
      await at(30_000);
      expect(await take(tokensOf(100), 11)).toMatchObject({ answer: "refused", limit: "tokens", retry_ms: 30_000 });
      expect(await take(tokensOf(100), 71)).toMatchObject({ answer: "refused", limit: "tokens", retry_ms: 40_000 });
      await taken(tokensOf(100), 10);
    });

    test("a refusal counts nothing, however often it is asked for", async () => {
      await taken(requestsOf(1));
      for (let second = 1; second < 60; second += 7) {
        await at(second * 1000);
        expect((await take(requestsOf(1))).answer).toBe("refused");
      }
      await at(60_000);
      await taken(requestsOf(1));
    });

    test("of two full limits the one that has room last is named", async () => {
      const limits = { requestsPerMinute: 2, tokensPerMinute: 100 };
      await taken(limits, 10);
      await at(5_000);
      await taken(limits, 80);
      expect(await take(limits, 50)).toMatchObject({ limit: "tokens", retry_ms: 60_000 });
      expect(await take(limits, 20)).toMatchObject({ limit: "requests", retry_ms: 55_000 });
      expect(await take({ requestsPerMinute: 100, tokensPerMinute: 100 }, 20)).toMatchObject({ limit: "tokens" });
    });

    test("what is above the whole limit by itself can never run, and says so at once", async () => {
      expect(await take(tokensOf(100), 101)).toEqual({ answer: "never", limit: "tokens" });
      await taken(tokensOf(100), 100);
    });

    test("a request begins with what is left of its tokens, if that is enough for it, and is corrected from there", async () => {
      const shrinking = (tokens_min: number) =>
        store.rates.take({ organizationId, requestId: newRequestId(), tokens: 500, tokens_min, limits: tokensOf(100) });
      const first = (await shrinking(10)) as RateTaken;
      expect(first.readings.tokens?.remaining).toBe(0);
      expect(await shrinking(1)).toMatchObject({ answer: "refused", limit: "tokens", retry_ms: 60_000 });
      await first.correct(30);
      expect(await shrinking(71)).toMatchObject({ answer: "refused", limit: "tokens" });
      const second = (await shrinking(70)) as RateTaken;
      await second.giveBack();
      expect((await taken(tokensOf(100), 10)).readings.tokens?.remaining).toBe(60);
      expect(await shrinking(101)).toEqual({ answer: "never", limit: "tokens" });
    });

    test("readings show what is left, this request counted, and when the limit is whole again", async () => {
      const limits = { requestsPerMinute: 5, tokensPerMinute: 1000 };
      expect((await taken(limits, 300)).readings).toEqual({
        requests: { limit: 5, remaining: 4, reset_ms: 60_000 },
        tokens: { limit: 1000, remaining: 700, reset_ms: 60_000 },
      });
      await at(15_000);
      expect(await take(limits, 900)).toMatchObject({
        answer: "refused",
        retry_ms: 45_000,
        readings: {
          requests: { limit: 5, remaining: 4, reset_ms: 45_000 },
          tokens: { limit: 1000, remaining: 700, reset_ms: 45_000 },
        },
      });
      expect((await taken(requestsOf(5), 0)).readings.tokens).toBeNull();
    });

    test("what is given back leaves no trace", async () => {
      for (const limits of [requestsOf(1), tokensOf(10), requestsOf(100_000)]) {
        const one = await taken(limits, 10);
        await one.giveBack();
        const again = await taken(limits, 10);
        expect(again.readings.requests?.remaining ?? 0).toBe((limits.requestsPerMinute ?? 1) - 1);
        await again.giveBack();
      }
    });

    test("a correction counts from then on, up or down, and says nothing of a minute that is over", async () => {
      const one = await taken(tokensOf(100), 90);
      await one.correct(20);
      const other = await taken(tokensOf(100), 80);
      await other.correct(10);
      await at(60_000);
      const late = await taken(tokensOf(100), 100);
      await late.correct(130);
      expect(await take(tokensOf(100), 1)).toMatchObject({ answer: "refused", retry_ms: 60_000 });
      await at(120_000);
      const next = await taken(tokensOf(100), 40);
      await at(180_000);
      await taken(tokensOf(100), 100);
      await next.correct(0);
      expect((await take(tokensOf(100), 1)).answer).toBe("refused");
    });

    test("organizations do not see each other", async () => {
      await taken(requestsOf(1));
      expect((await take(requestsOf(1), 1, newOrganizationId())).answer).toBe("taken");
      expect((await take(requestsOf(1))).answer).toBe("refused");
    });

    test("a new plan's limits count at once, and what was counted stays, however it was counted", async () => {
      for (let i = 0; i < 5; i++) await taken(requestsOf(10_000_000));
      expect((await taken(requestsOf(10))).readings.requests?.remaining).toBe(4);
      expect((await take(requestsOf(6))).answer).toBe("refused");
      expect((await taken(requestsOf(10_000_000))).readings.requests?.remaining).toBe(10_000_000 - 7);
      await at(61_000);
      expect((await taken(requestsOf(6))).readings.requests?.remaining).toBe(5);
    });

    test("of many at once, exactly as many run as the limit says, whichever node they ask", async () => {
      const limits = requestsOf(7);
      const nodes = [store.rates, store.another ?? store.rates];
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          nodes[i % 2]!.take({ organizationId, requestId: newRequestId(), tokens: 3, tokens_min: 3, limits }),
        ),
      );
      expect(answers.filter(({ answer }) => answer === "taken")).toHaveLength(7);
    });

    test("whatever is asked when: never above the limit in any minute, and nothing refused that has room", async () => {
      await fc.assert(
        fc.asyncProperty(schedule, async ({ limits, steps }) => {
          const owner = newOrganizationId();
          // An entry that a second's requests share ends up to a second late: there the model with 61 seconds refuses too.
          const strict_ms =
            Math.min(limits.requestsPerMinute ?? 1e9, limits.tokensPerMinute ?? 1e9) <= 6_000 ? 0 : 1_000;
          const model = new Model();
          let now_ms = 0;
          for (const step of steps) {
            now_ms += step.after_ms;
            await at(now_ms);
            const answer = await take(limits, step.tokens, owner);
            const seen = { now_ms, tokens: step.tokens, answer: answer.answer, retry_ms: retryOf(answer) };
            if (answer.answer === "taken") {
              expect({ ...seen, fits: model.fits(now_ms, step.tokens, limits, 60_000) }).toEqual({
                ...seen,
                fits: true,
              });
              if (step.then === "give back") await answer.giveBack();
              else {
                const tokens = step.then === "correct" ? Math.floor(step.tokens / 2) : step.tokens;
                model.counted.push({ at_ms: now_ms, tokens });
                if (step.then === "correct") await answer.correct(tokens);
              }
            } else if (answer.answer === "refused") {
              const fits = model.fits(now_ms, step.tokens, limits, 60_000 + strict_ms);
              expect({ ...seen, fits }).toEqual({ ...seen, fits: false });
              const later_ms = now_ms + answer.retry_ms;
              const fitsThen = model.fits(later_ms, step.tokens, limits, 60_000);
              const fitsBefore = model.fits(later_ms - 1, step.tokens, limits, 60_000 + strict_ms);
              const bounded = answer.retry_ms > 0 && answer.retry_ms <= 60_000;
              const is = { fitsThen, fitsBefore, bounded };
              expect({ ...seen, ...is }).toEqual({ ...seen, fitsThen: true, fitsBefore: false, bounded: true });
            } else {
              expect(step.tokens).toBeGreaterThan(limits.tokensPerMinute ?? Number.POSITIVE_INFINITY);
            }
          }
        }),
        { numRuns: schedules[name]! },
      );
    });
  });
}

const retryOf = (answer: RateAnswer) => (answer.answer === "refused" ? answer.retry_ms : null);

/** All that was ever counted, added up afresh each time. */
class Model {
  counted: { at_ms: number; tokens: number }[] = [];

  fits(now_ms: number, tokens: number, { requestsPerMinute, tokensPerMinute }: RateLimits, minute_ms: number): boolean {
    const counting = this.counted.filter(({ at_ms }) => now_ms - at_ms < minute_ms);
    const used = counting.reduce((sum, one) => sum + one.tokens, 0);
    return counting.length + 1 <= (requestsPerMinute ?? Infinity) && used + tokens <= (tokensPerMinute ?? Infinity);
  }
}

const schedule = fc
  .record({
    requestsPerMinute: fc.option(fc.integer({ min: 1, max: 6 })),
    /** Small, so that each is counted by itself; or so large that seconds are shared. */
    scale: fc.constantFrom(1, 1000),
    tokensPerMinute: fc.option(fc.integer({ min: 8, max: 40 })),
    steps: fc.array(
      fc.record({
        after_ms: fc.oneof(
          fc.integer({ min: 0, max: 3 }),
          fc.integer({ min: 0, max: 2_000 }),
          fc.integer({ min: 0, max: 40_000 }),
          fc.constantFrom(1_000, 59_999, 60_000, 60_001, 61_000),
        ),
        tokens: fc.integer({ min: 0, max: 20 }),
        // biome-ignore lint/suspicious/noThenProperty: these are records, never awaited
        then: fc.constantFrom("run", "run", "correct", "give back"),
      }),
      { minLength: 1, maxLength: 40 },
    ),
  })
  .map(({ requestsPerMinute, tokensPerMinute, scale, steps }) => ({
    limits: {
      requestsPerMinute: scale === 1 ? requestsPerMinute : null,
      tokensPerMinute: tokensPerMinute === null ? null : tokensPerMinute * scale,
    },
    steps: steps.map((step) => ({ ...step, tokens: step.tokens * scale })),
  }));
