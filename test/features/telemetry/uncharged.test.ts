/**
 * The cost of failed attempts: each attempt whose engine may have worked is counted, except the attempt for which the
 * request is charged.
 */
import { expect, test } from "bun:test";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { AttemptKind } from "../../../src/core/upstream/attempt.ts";
import { unchargedAttempts } from "../../../src/features/telemetry/uncharged.ts";

const ended = (outcomes: readonly AttemptKind[], outputTokens: number) =>
  unchargedAttempts({
    tried: outcomes.map((outcome, at) => ({ upstream: `engine-${at}`, outcome, ms: 1 })),
    usage: { ...noUsage, outputTokens },
    inputTokensExpected: 70,
  }).map(({ upstream, outcome, inputTokens }) => `${upstream} ${outcome} ${inputTokens}`);

test("an answer pays for the attempt that it came from, and for no other", () => {
  expect(ended(["answered"], 5)).toEqual([]);
  expect(ended(["timeout", "broken", "answered"], 5)).toEqual(["engine-0 timeout 70", "engine-1 broken 70"]);
  // A caller that left is charged for what was generated.
  expect(ended(["failed", "abandoned"], 5)).toEqual(["engine-0 failed 70"]);
  // So does one whose answer broke off, and whom no other engine took.
  expect(ended(["broken", "unreachable"], 5)).toEqual([]);
  expect(ended(["timeout", "broken", "busy"], 5)).toEqual(["engine-0 timeout 70"]);
});

test("where nothing is charged, all attempts were in vain", () => {
  expect(ended(["timeout", "failed"], 0)).toEqual(["engine-0 timeout 70", "engine-1 failed 70"]);
  expect(ended([], 0)).toEqual([]);
});

test("an engine that was not reached, is full, or would not take it has not worked", () => {
  const idle = ["unreachable", "stale", "busy", "refused", "rejected", "too_long"] as const;
  expect(ended(idle, 0)).toEqual([]);
});
