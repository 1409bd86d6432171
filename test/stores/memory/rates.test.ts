/** Sliding rates in memory, at their bounds; what all stores keep is in test/core/store/rates.test.ts. */

import { fullGC, heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import type { RateTaken } from "../../../src/core/store/rates.ts";
import { memoryRates } from "../../../src/stores/memory/rates.ts";

function limitedTo(tokensPerMinute: number) {
  let now_ms = 0;
  const rates = memoryRates(() => now_ms);
  const limits = { requestsPerMinute: null, tokensPerMinute };
  let requests = 0;
  const takeAt = (at_ms: number, tokens: number, id = "org_1") => {
    now_ms = at_ms;
    const requestId = `req_${requests++}`;
    const subjects = [{ limitedBy: "organization" as const, id, limits }];
    return rates.take({ organizationId: id, requestId, tokens, tokens_min: tokens, subjects });
  };
  return { takeAt };
}

test("a refusal says when there is room to the last token", async () => {
  const { takeAt } = limitedTo(100);
  await takeAt(0, 50);
  await takeAt(10_000, 50);
  expect(await takeAt(20_000, 50)).toMatchObject({ answer: "refused", retry_ms: 40_000 });
  expect(await takeAt(20_000, 51)).toMatchObject({ answer: "refused", retry_ms: 50_000 });
  expect(await takeAt(69_999, 51)).toMatchObject({ answer: "refused", retry_ms: 1 });
  expect(await takeAt(70_000, 51)).toMatchObject({ answer: "taken" });
});

test("a correction that comes when its minute is over changes nothing", async () => {
  const { takeAt } = limitedTo(100);
  const first = (await takeAt(0, 90)) as RateTaken;
  await takeAt(60_000, 10);
  await first.correct(5);
  expect(await takeAt(60_000, 91)).toMatchObject({ answer: "refused" });
  expect(await takeAt(60_000, 90)).toMatchObject({ answer: "taken" });
});

test("who has asked for nothing for a minute takes no memory", async () => {
  const { takeAt } = limitedTo(100);
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
