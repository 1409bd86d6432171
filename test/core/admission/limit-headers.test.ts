/** Limits as headers of answers, with durations in the format that each family of clients reads. */
import { expect, test } from "bun:test";
import { duration, limitHeaders } from "../../../src/core/admission/limit-words.ts";

test("durations are written as OpenAI writes them, and never round down to too early", () => {
  const written: [number, string][] = [
    [0, "0s"],
    [0.2, "1ms"],
    [120, "120ms"],
    [1_000, "1s"],
    [12_500, "12.5s"],
    [59_999.5, "1m0s"],
    [61_250, "1m1.25s"],
    [360_000, "6m0s"],
  ];
  for (const [ms, text] of written) expect([ms, duration(ms)]).toEqual([ms, text]);
});

test("each protocol has its own family, and a limit that a plan does not have has no header", () => {
  const readings = { requests: { limit: 60, remaining: 7, reset_ms: 60_000 }, tokens: null };
  const now_ms = Date.parse("2026-11-21T03:00:00Z");
  expect(limitHeaders("chat.completions", readings, now_ms)).toEqual({
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "7",
    "x-ratelimit-reset-requests": "1m0s",
  });
  expect(limitHeaders("messages", readings, now_ms)).toEqual({
    "anthropic-ratelimit-requests-limit": "60",
    "anthropic-ratelimit-requests-remaining": "7",
    "anthropic-ratelimit-requests-reset": "2026-11-21T03:01:00.000Z",
  });
});
