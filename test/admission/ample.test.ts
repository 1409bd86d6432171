/** The hint that lets an engine think while the ledger decides: only after a grant, only with room to spare, never for long. */
import { expect, test } from "bun:test";
import { ample } from "../../src/admission/ample.ts";
import type { WindowReadings } from "../../src/store/ledger.ts";
import { noLimits } from "../../src/store/plan.ts";

const reading = (used: number, held: number) => ({
  kind: "session" as const,
  limit: null,
  used,
  held,
  startsAt: new Date(0),
  resetAt: new Date(1),
});
const windows = (used: number, held = 0): WindowReadings => ({
  session: reading(used, held),
  week: reading(used, held),
  month: reading(used, held),
});

test("nothing is assumed before the first grant, nor long after the last, nor after a refusal", () => {
  let now_ms = 0;
  const hint = ample(() => now_ms);
  expect(hint.isAmple("org_1", noLimits, 10, 0)).toBe(false);
  hint.learn("org_1", windows(0));
  expect(hint.isAmple("org_1", noLimits, 10, 0)).toBe(true);
  expect(hint.isAmple("org_2", noLimits, 10, 0)).toBe(false);
  now_ms = 5_001;
  expect(hint.isAmple("org_1", noLimits, 10, 0)).toBe(false);
  hint.learn("org_1", windows(0));
  hint.forget("org_1");
  expect(hint.isAmple("org_1", noLimits, 10, 0)).toBe(false);
});

test("each window must fit the request twenty times over, holds counted; and the concurrency four times", () => {
  const hint = ample(() => 0);
  const plan = { ...noLimits, week: 1000, concurrentRequests: 8 };
  hint.learn("org_1", windows(500, 299));
  expect(hint.isAmple("org_1", plan, 10, 1)).toBe(true);
  expect(hint.isAmple("org_1", plan, 11, 1)).toBe(false);
  expect(hint.isAmple("org_1", plan, 10, 2)).toBe(false);
});
