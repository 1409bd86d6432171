/** Sliding rates in memory, at their bounds; what all stores keep is in test/store/rates.test.ts. */
import { expect, test } from "bun:test";
import { memoryRates } from "../../src/memory/rates.ts";
import type { RateTaken } from "../../src/store/rates.ts";

function limitedTo(tokensPerMinute: number) {
  let now_ms = 0;
  const rates = memoryRates(() => now_ms);
  const subject = {
    limitedBy: "organization",
    id: "org_1",
    limits: { requestsPerMinute: null, tokensPerMinute },
  } as const;
  let requests = 0;
  const takeAt = (at_ms: number, tokens: number) => {
    now_ms = at_ms;
    const requestId = `req_${requests++}`;
    return rates.take({ organizationId: "org_1", requestId, tokens, tokens_min: tokens, subjects: [subject] });
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
