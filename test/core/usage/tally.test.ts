/**
 * An engine's early report does not cover the output after it; and each kind of counted token is charged at its price.
 */
import { expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { outputCalibration } from "../../../src/core/usage/output-calibration.ts";
import { priceOf } from "../../../src/core/usage/price.ts";
import { Tally } from "../../../src/core/usage/tally.ts";

const token: InferenceEvent = { type: "part-delta", index: 0, delta: "word" };
const end: InferenceEvent = { type: "response-end", reason: "stop" };
const report = (inputTokens: number, outputTokens: number): InferenceEvent => ({
  type: "usage",
  usage: { ...noUsage, inputTokens, outputTokens, source: "reported" },
});

function counted(...events: InferenceEvent[]) {
  const count = new Tally({
    contextTokens: 4096,
    outputTokensCap: 1000,
    inputTokensExpected: 40,
    calibration: () => outputCalibration().of("main/m"),
    counting: null,
  });
  const ahead = count.outputTokensWith(events);
  count.add(events);
  const { inputTokens, outputTokens, source } = count.usage();
  return { inputTokens, outputTokens, source, reported: count.reported, ahead };
}

test("an engine that reports its input at the start and its output never is counted, its input as it said", () => {
  expect(counted(report(25, 1), token, token, token, end)).toEqual({
    inputTokens: 25,
    outputTokens: 3,
    source: "counted",
    reported: false,
    ahead: 3,
  });
});

test("a report after all output is the whole truth, also where it is less than what was counted", () => {
  expect(counted(report(25, 1), token, token, token, report(25, 2), end)).toEqual({
    inputTokens: 25,
    outputTokens: 2,
    source: "reported",
    reported: true,
    ahead: 2,
  });
});

test("each kind of tokens is paid at its own price, and all are added", () => {
  const usage = { ...noUsage, inputTokens: 2, cachedInputTokens: 3, cacheWriteTokens: 4, outputTokens: 5 };
  const prices = { input: 1000, cachedInput: 10_000, cacheWrite: 100_000, output: 1_000_000 };
  expect(priceOf({ ...usage, reasoningTokens: 5 }, prices)).toBe(5432);
});
