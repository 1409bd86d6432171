// Sliding rates: one contract for every store that counts them, against a reference model too simple to be wrong.

import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";

import type { RateAnswer, RateLimits, RateSubject, RateTaken } from "../../../src/core/store/rates.ts";
import { holds } from "../../harness/depth.ts";
import { newHex, newRequestId } from "./ledger-stores.ts";
import { ofOrganization, type RateStore, rateStores } from "./rates-stores.ts";

setDefaultTimeout(60_000);

/**
 * The start is in the middle of a second, so that an entry that the requests of a second share ends at another moment
 * than the entry of a single request.
 */
const start_ms = Date.parse("2026-11-21T03:00:00.400Z");
/** The number of runs of a property, by store. Redis has to be asked for each step, so it has fewer runs. */
const schedules: Record<string, number> = { memory: 1000, redis: 40, "redis cluster": 20 };

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
      takeOf(ofOrganization(owner, limits), tokens, owner);
    const takeOf = (subjects: RateSubject[], tokens = 1, owner = organizationId, rates = store.rates) =>
      rates.take({ organizationId: owner, requestId: newRequestId(), tokens, tokens_min: tokens, subjects });
    const taken = async (limits: RateLimits, tokens = 1) => {
      const answer = await take(limits, tokens);
      expect(answer.answer).toBe("taken");
      return answer as RateTaken;
    };

    test("a request begins with what is left of its tokens, if that is enough for it, and is corrected from there", async () => {
      const shrinking = (tokens_min: number) =>
        store.rates.take({
          ...{ organizationId, requestId: newRequestId(), tokens: 500, tokens_min },
          subjects: ofOrganization(organizationId, tokensOf(100)),
        });
      const first = (await shrinking(10)) as RateTaken;
      expect(first.readings.tokens?.remaining).toBe(0);
      expect(await shrinking(1)).toMatchObject({ answer: "refused", limit: "tokens", retry_ms: 60_000 });
      await first.correct(30);
      expect(await shrinking(71)).toMatchObject({ answer: "refused", limit: "tokens" });
      const second = (await shrinking(70)) as RateTaken;
      await second.giveBack();
      expect((await taken(tokensOf(100), 10)).readings.tokens?.remaining).toBe(60);
      expect(await shrinking(101)).toMatchObject({ answer: "never", tokensPerMinute: 100 });
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
      // A later request keeps the counts of the organization in the store's memory.
      await at(150_000);
      await taken(tokensOf(100), 10);
      await at(180_000);
      await taken(tokensOf(100), 90);
      await next.correct(0);
      expect((await take(tokensOf(100), 1)).answer).toBe("refused");
    });

    test("a new plan's limits count at once, and what was counted stays, however it was counted", async () => {
      for (let i = 0; i < 5; i++) await taken(requestsOf(10_000_000));
      expect((await taken(requestsOf(10))).readings.requests?.remaining).toBe(4);
      expect((await take(requestsOf(6))).answer).toBe("refused");
      expect((await taken(requestsOf(10_000_000))).readings.requests?.remaining).toBe(10_000_000 - 7);
      await at(61_000);
      expect((await taken(requestsOf(6))).readings.requests?.remaining).toBe(5);
    });

    /** Subjects of this test's organization, made anew in each test. */
    const key = (limits: RateLimits, id = newId("key")): RateSubject => ({ limitedBy: "key", id, limits });
    const team = (limits: RateLimits, id = newId("team")): RateSubject => ({ limitedBy: "team", id, limits });
    const whole = (limits: RateLimits) => ofOrganization(organizationId, limits);

    test("what one refuses takes nothing from the others, and the answer says whose limit it was", async () => {
      const own = [key(requestsOf(1)), team(requestsOf(2)), ...whole(requestsOf(3))];
      const sibling = [key(requestsOf(5)), own[1]!, own[2]!];
      expect((await takeOf(own)).answer).toBe("taken");
      for (let i = 0; i < 5; i++) expect(await takeOf(own)).toMatchObject({ answer: "refused", limitedBy: "key" });
      expect((await takeOf(sibling)).answer).toBe("taken");
      for (let i = 0; i < 5; i++) expect(await takeOf(sibling)).toMatchObject({ answer: "refused", limitedBy: "team" });
      expect((await takeOf([...whole(requestsOf(3))])).answer).toBe("taken");
      expect(await takeOf([sibling[0]!, own[2]!])).toMatchObject({ answer: "refused", limitedBy: "organization" });
      // The sibling had used one of its five requests.
      expect(((await takeOf([sibling[0]!])) as RateTaken).readings.requests?.remaining).toBe(3);
    });

    test("limits for models are subjects of their own, the organization's too", async () => {
      const forModels = (models: string, limits: RateLimits): RateSubject => ({
        ...{ limitedBy: "organization", models, id: newId("lim"), limits },
      });
      const [one, both] = [forModels("acme/large", requestsOf(1)), forModels("acme/*", requestsOf(2))];
      const rest = whole(requestsOf(3));
      expect((await takeOf([one, both, ...rest])).answer).toBe("taken");
      expect(await takeOf([one, both, ...rest])).toMatchObject({ answer: "refused", models: "acme/large" });
      expect((await takeOf([both, ...rest])).answer).toBe("taken");
      expect(await takeOf([both, ...rest])).toMatchObject({
        ...{ answer: "refused", limitedBy: "organization", models: "acme/*" },
      });
      expect((await takeOf(rest)).answer).toBe("taken");
      const last = await takeOf(rest);
      expect(last).toMatchObject({ answer: "refused", limitedBy: "organization" });
      expect(last).not.toHaveProperty("models");
      const left = await store.rates.read(organizationId, [one, both, ...rest]);
      expect(left.map(({ requests }) => requests?.remaining)).toEqual([0, 0, 0]);
    });

    test("of several full limits the one that has room last is named, and of equals the narrowest", async () => {
      const own = [key(requestsOf(2)), team(tokensOf(20)), ...whole(requestsOf(2))];
      await takeOf(own, 10);
      await at(5_000);
      await takeOf(own, 10);
      expect(await takeOf(own, 10)).toMatchObject({ limitedBy: "key", limit: "requests", retry_ms: 55_000 });
      expect(await takeOf(own, 20)).toMatchObject({
        ...{ limitedBy: "team", limit: "tokens", retry_ms: 60_000 },
        reading: { limit: 20, remaining: 0 },
      });
      expect(await takeOf(own, 21)).toEqual({ answer: "never", limitedBy: "team", tokensPerMinute: 20 });
    });

    test("readings are those that have least left, and each subject is read by itself", async () => {
      const limits = (requestsPerMinute: number, tokensPerMinute: number) => ({ requestsPerMinute, tokensPerMinute });
      const own = [key(limits(9, 50)), ...whole(limits(5, 100))];
      expect((await store.rates.read(organizationId, own)).map(({ requests }) => requests)).toEqual([
        { limit: 9, remaining: 9, reset_ms: 0 },
        { limit: 5, remaining: 5, reset_ms: 0 },
      ]);
      const { readings } = (await takeOf(own, 20)) as RateTaken;
      expect(readings).toEqual({
        requests: { limit: 5, remaining: 4, reset_ms: 60_000 },
        tokens: { limit: 50, remaining: 30, reset_ms: 60_000 },
      });
      await at(10_000);
      expect(await store.rates.read(organizationId, own)).toEqual([
        {
          requests: { limit: 9, remaining: 8, reset_ms: 50_000 },
          tokens: { limit: 50, remaining: 30, reset_ms: 50_000 },
        },
        {
          requests: { limit: 5, remaining: 4, reset_ms: 50_000 },
          tokens: { limit: 100, remaining: 80, reset_ms: 50_000 },
        },
      ]);
    });

    test("a request begins with what is left of the narrowest, and is corrected wherever it was counted", async () => {
      const [one, two] = [key(tokensOf(40)), team(tokensOf(60))];
      const shrinking = (subjects: RateSubject[], tokens_min = 1) =>
        store.rates.take({ organizationId, requestId: newRequestId(), tokens: 500, tokens_min, subjects });
      const first = (await shrinking([one, two])) as RateTaken;
      expect(first.readings.tokens).toMatchObject({ limit: 40, remaining: 0 });
      const second = (await shrinking([two], 20)) as RateTaken;
      // The key is in another team by now: the correction goes to the team in which the request was counted.
      await first.correct(10);
      await second.giveBack();
      const tokensLeft = async () =>
        (await store.rates.read(organizationId, [one, two])).map(({ tokens }) => tokens!.remaining);
      expect(await tokensLeft()).toEqual([30, 50]);
    });

    test("many organizations at once, in one turn, at both nodes, with corrections that nobody waits for", async () => {
      const owners = Array.from({ length: 40 }, () => {
        const id = newOrganizationId();
        return { id, subjects: [key(tokensOf(100)), team(tokensOf(100)), ...ofOrganization(id, tokensOf(100))] };
      });
      for (let round = 0; round < 3; round++) {
        const answers = await Promise.all(
          owners.map(({ id, subjects }, at) =>
            takeOf(subjects, 100, id, (at % 2 === 1 && store.another) || store.rates),
          ),
        );
        expect(answers.filter(({ answer }) => answer === "taken")).toHaveLength(40);
        for (const answer of answers) if (answer.answer === "taken") void answer.correct(0);
      }
    });

    test("whatever is asked when: never above a limit in any minute, and nothing refused that has room", async () => {
      await holds(
        fc.asyncProperty(schedule, async ({ limits, steps }) => {
          const owner = newOrganizationId();
          const of = (limitedBy: keyof typeof limits, id: string) => ({ limitedBy, id, limits: limits[limitedBy] });
          const ofAll = [of("key", newId("key")), of("team", newId("team")), of("organization", owner)];
          const models = new Map(ofAll.map((subject) => [subject.id, new Model(subject)]));
          let now_ms = 0;
          for (const step of steps) {
            now_ms += step.after_ms;
            await at(now_ms);
            // The request comes from the limited key, from another key of its team, or from a key without a team.
            const subjects = ofAll.slice(step.who).filter(({ limits: { requestsPerMinute, tokensPerMinute } }) => {
              return requestsPerMinute !== null || tokensPerMinute !== null;
            });
            if (subjects.length === 0) continue;
            const counting = subjects.map(({ id }) => models.get(id)!);
            const fit = (at_ms: number, isStrict: boolean) =>
              counting.every((model) => model.fits(at_ms, step.tokens, isStrict));
            const answer = await takeOf(subjects, step.tokens, owner);
            const seen = { now_ms, tokens: step.tokens, subjects, answer: answer.answer, retry_ms: retryOf(answer) };
            if (answer.answer === "taken") {
              expect({ ...seen, fits: fit(now_ms, false) }).toEqual({ ...seen, fits: true });
              const tokens = step.then === "correct" ? Math.floor(step.tokens / 2) : step.tokens;
              if (step.then !== "give back")
                for (const model of counting) model.counted.push({ at_ms: now_ms, tokens });
              const heard = {
                run: async () => {},
                correct: () => answer.correct(tokens),
                "give back": () => answer.giveBack(),
              }[step.then]();
              // If the step does not wait, the correction goes along with the next request.
              if (step.waits) await heard;
            } else if (answer.answer === "refused") {
              expect({ ...seen, fits: fit(now_ms, true) }).toEqual({ ...seen, fits: false });
              const later_ms = now_ms + answer.retry_ms;
              const named = models.get(subjects.find(({ limitedBy }) => limitedBy === answer.limitedBy)!.id)!;
              const is = {
                fitsThen: fit(later_ms, false),
                fitsBefore: named.fits(later_ms - 1, step.tokens, true),
                bounded: answer.retry_ms > 0 && answer.retry_ms <= 60_000,
              };
              expect({ ...seen, ...is }).toEqual({ ...seen, fitsThen: true, fitsBefore: false, bounded: true });
            } else {
              const least = Math.min(...subjects.map(({ limits }) => limits.tokensPerMinute ?? Infinity));
              expect(step.tokens).toBeGreaterThan(least);
            }
          }
        }),
        schedules[name]!,
      );
    });
  });
}

const newId = (of: "key" | "team" | "lim") => `${of}_${newHex()}`;
const retryOf = (answer: RateAnswer) => (answer.answer === "refused" ? answer.retry_ms : null);

/** A reference model: keeps every count of a subject, and adds them up anew for each question. */
class Model {
  counted: { at_ms: number; tokens: number }[] = [];
  /**
   * The milliseconds beyond a minute for which requests may count. An entry that a second's requests share ends up to a
   * second late, so a refusal is right if the model refuses with 61 seconds.
   */
  readonly #strict_ms: number;
  constructor(readonly subject: RateSubject) {
    const { requestsPerMinute, tokensPerMinute } = subject.limits;
    this.#strict_ms = Math.min(requestsPerMinute ?? 1e9, tokensPerMinute ?? 1e9) <= 6_000 ? 0 : 1_000;
  }

  fits(now_ms: number, tokens: number, isStrict: boolean): boolean {
    const { requestsPerMinute, tokensPerMinute } = this.subject.limits;
    const counting = this.counted.filter(({ at_ms }) => now_ms - at_ms < 60_000 + (isStrict ? this.#strict_ms : 0));
    const used = counting.reduce((sum, one) => sum + one.tokens, 0);
    return counting.length + 1 <= (requestsPerMinute ?? Infinity) && used + tokens <= (tokensPerMinute ?? Infinity);
  }
}

const limitsOf = (scale: number) =>
  fc.record({
    requestsPerMinute: scale === 1 ? fc.option(fc.integer({ min: 1, max: 6 })) : fc.constant(null),
    tokensPerMinute: fc.option(fc.integer({ min: 8, max: 40 }).map((tokens) => tokens * scale)),
  });

const schedule = fc
  .record({
    /**
     * The factor of the limits: small, so that each request is counted singly, or so large that requests of a second
     * share an entry.
     */
    scale: fc.constantFrom(1, 1000),
    steps: fc.array(
      fc.record({
        after_ms: fc.oneof(
          fc.integer({ min: 0, max: 3 }),
          fc.integer({ min: 0, max: 2_000 }),
          fc.integer({ min: 0, max: 40_000 }),
          fc.constantFrom(1_000, 59_999, 60_000, 60_001, 61_000),
        ),
        tokens: fc.integer({ min: 0, max: 20 }),
        who: fc.constantFrom(0, 0, 1, 2),
        // biome-ignore lint/suspicious/noThenProperty: these are records, never awaited
        then: fc.constantFrom("run" as const, "run" as const, "correct" as const, "give back" as const),
        waits: fc.boolean(),
      }),
      { minLength: 1, maxLength: 40 },
    ),
  })
  .chain(({ scale, steps }) =>
    fc.record({
      limits: fc.record({ key: limitsOf(scale), team: limitsOf(scale), organization: limitsOf(scale) }),
      steps: fc.constant(steps.map((step) => ({ ...step, tokens: step.tokens * scale }))),
    }),
  );
