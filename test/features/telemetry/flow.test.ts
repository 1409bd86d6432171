/** The rates that a process reports: the increase of its counters per second in the last half minute. */
import { expect, test } from "bun:test";
import { flow, readingOf } from "../../../src/features/telemetry/flow.ts";
import { instruments } from "../../../src/features/telemetry/registry.ts";

test("rates are what counters rose by, in the last half minute alone", () => {
  const counters = instruments();
  const model = "acme/writer-1";
  const answer = (input: number, output: number, outcome: string) => {
    counters.inc("inference_tokens_total", { model, class: "input" }, input);
    counters.inc("inference_tokens_total", { model, class: "cached_input" }, input);
    counters.inc("inference_tokens_total", { model, class: "output" }, output);
    counters.inc("inference_requests_total", { operation: "chat", model, outcome, code: "" });
    counters.observe("inference_time_to_first_part_seconds", { model }, 0.3);
  };
  answer(1e6, 1e6, "completed");
  const flowing = flow();
  const at = (seconds: number) => flowing.add(readingOf(counters, seconds * 1000));
  expect(at(0)).toEqual({
    inputTokensPerSecond: 0,
    outputTokensPerSecond: 0,
    requestsPerSecond: 0,
    failuresPerSecond: 0,
    firstParts: [],
  });
  answer(100, 40, "completed");
  answer(100, 60, "failed");
  expect(at(10)).toEqual({
    inputTokensPerSecond: 40,
    outputTokensPerSecond: 10,
    requestsPerSecond: 0.2,
    failuresPerSecond: 0.1,
    firstParts: [{ within_s: 0.5, requests: 2 }],
  });
  expect(at(20).outputTokensPerSecond).toBe(5);
  expect(at(40).outputTokensPerSecond).toBe(0);
  expect(at(3_600).firstParts).toEqual([]);
});
