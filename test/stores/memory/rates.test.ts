/**
 * Edge cases and memory use of the sliding rates in memory. The rules that all stores follow are tested in
 * test/core/store/rates.test.ts.
 */

import { fullGC, heapStats } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import type { RateLimits, RateSubject, RateTaken } from "../../../src/core/store/rates.ts";
import { memoryRates } from "../../../src/stores/memory/rates.ts";

test("who has asked for nothing for a minute takes no memory", async () => {
  let now_ms = 0;
  const rates = memoryRates(() => now_ms);
  const limits = { requestsPerMinute: null, tokensPerMinute: 100 };
  const takeAt = (at_ms: number, tokens: number, id = "org_1") => {
    now_ms = at_ms;
    const subjects: RateSubject[] = [{ limitedBy: "organization", id, limits }];
    return rates.take({ organizationId: id, requestId: "req_1", tokens, tokens_min: tokens, subjects });
  };
  const listsHere = () => {
    fullGC();
    return heapStats().objectTypeCounts.Array ?? 0;
  };
  const before = listsHere();
  for (let at = 0; at < 10_000; at++) await takeAt(0, 1, `org_${at}`);
  expect(listsHere() - before).toBeGreaterThan(9_000);
  await takeAt(60_000, 1);
  expect(listsHere() - before).toBeLessThan(1_000);
  expect(await takeAt(60_000, 99)).toMatchObject({ answer: "taken" });
});

describe("a share of the limits, among so many processes", () => {
  function sharing() {
    let now_ms = 0;
    const rates = memoryRates(() => now_ms);
    let requests = 0;
    const at = (at_ms: number) => {
      now_ms = at_ms;
    };
    const subjectsOf = (limits: Partial<RateLimits>): RateSubject[] => [
      {
        limitedBy: "organization",
        id: "org_1",
        limits: { requestsPerMinute: null, tokensPerMinute: null, ...limits },
      },
    ];
    const take = (limits: Partial<RateLimits>, processes: number, tokens = 1, tokens_min = tokens) => {
      const requestId = `req_${requests++}`;
      return rates.take(
        { organizationId: "org_1", requestId, tokens, tokens_min, subjects: subjectsOf(limits) },
        processes,
      );
    };
    const takenOf = async (count: number, limits: Partial<RateLimits>, processes: number) => {
      let taken = 0;
      for (let number = 0; number < count; number++) if ((await take(limits, processes)).answer === "taken") taken += 1;
      return taken;
    };
    const read = async (limits: Partial<RateLimits>, processes: number) =>
      (await rates.read("org_1", subjectsOf(limits), processes))[0]!;
    return { at, take, takenOf, read };
  }

  test.each([
    [6, 3, 2],
    [7, 3, 3],
    [8, 3, 3],
    [2, 3, 1],
    [1, 50, 1],
    [5, 1, 5],
  ])("of %d a minute among %d are %d: divided, rounded up, and one at least", async (limit, processes, share) => {
    expect(await sharing().takenOf(20, { requestsPerMinute: limit }, processes)).toBe(share);
    expect(await sharing().takenOf(20, { tokensPerMinute: limit }, processes)).toBe(share);
  });

  test("grows at once when a process leaves, and shrinks when one joins, for what was counted already too", async () => {
    const { takenOf } = sharing();
    const limits = { requestsPerMinute: 12 };
    expect(await takenOf(20, limits, 4)).toBe(3);
    expect(await takenOf(20, limits, 2)).toBe(3);
    expect(await takenOf(20, limits, 3)).toBe(0);
    expect(await takenOf(20, limits, 1)).toBe(6);
  });

  test("headers keep the whole limit, and promise no more than is left here", async () => {
    const { at, take } = sharing();
    const limits = { requestsPerMinute: 60, tokensPerMinute: 900 };
    expect(await take(limits, 3, 100)).toMatchObject({
      readings: {
        requests: { limit: 60, remaining: 19, reset_ms: 60_000 },
        tokens: { limit: 900, remaining: 200, reset_ms: 60_000 },
      },
    });
    at(10_000);
    await take(limits, 3, 200);
    expect(await take(limits, 3, 50)).toMatchObject({
      ...{ answer: "refused", limit: "tokens", reading: { limit: 900, remaining: 0 }, retry_ms: 50_000 },
      readings: { requests: { limit: 60, remaining: 18 } },
    });
  });

  test("what is read is as if the others had counted as much: a share that is used up reads as a limit that is", async () => {
    const { take, read } = sharing();
    const limits = { requestsPerMinute: 7, tokensPerMinute: 900 };
    expect(await read(limits, 3)).toEqual({
      requests: { limit: 7, remaining: 7, reset_ms: 0 },
      tokens: { limit: 900, remaining: 900, reset_ms: 0 },
    });
    await take(limits, 3, 100);
    expect(await read(limits, 3)).toMatchObject({ requests: { remaining: 4 }, tokens: { remaining: 600 } });
    await take(limits, 3, 200);
    expect(await read(limits, 3)).toMatchObject({ requests: { remaining: 1 }, tokens: { remaining: 0 } });
  });

  test("a request above the share, and not above the limit, runs where none ran in the last minute", async () => {
    const { at, take } = sharing();
    const limits = { tokensPerMinute: 900 };
    expect(await take(limits, 3, 901)).toMatchObject({ answer: "never", tokensPerMinute: 900 });
    expect(await take(limits, 3, 800)).toMatchObject({ answer: "taken", readings: { tokens: { remaining: 0 } } });
    at(10_000);
    expect(await take(limits, 3, 800)).toMatchObject({ answer: "refused", limit: "tokens", retry_ms: 50_000 });
    at(60_000);
    expect(await take(limits, 3, 10)).toMatchObject({ answer: "taken" });
    expect(await take(limits, 3, 800)).toMatchObject({ answer: "refused", retry_ms: 60_000 });
  });

  test("a request begins with what is left of the share", async () => {
    const { take } = sharing();
    const answer = await take({ tokensPerMinute: 900 }, 3, 5_000, 10);
    expect(answer).toMatchObject({ answer: "taken", readings: { tokens: { remaining: 0 } } });
    await (answer as RateTaken).correct(120);
    expect(await take({ tokensPerMinute: 900 }, 3, 180)).toMatchObject({ answer: "taken" });
  });
});
