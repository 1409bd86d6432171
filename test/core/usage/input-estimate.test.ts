import { describe, expect, test } from "bun:test";
import { imageTokens } from "../../../src/core/inference/media.ts";
import type { InputPart } from "../../../src/core/inference/request.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { inputEstimate } from "../../../src/core/usage/input-estimate.ts";
import { saying } from "../../harness/request.ts";

const model = { id: "acme/writer-1" };
const requestOf = (...parts: InputPart[]) => saying("", { turns: [{ role: "user", parts }] });
const text = requestOf({ kind: "text", text: "x" });
const noMedia = { bytes: 0 };
const reported = (inputTokens: number) => ({ ...noUsage, inputTokens, source: "reported" as const });

test("an estimate stands above what text takes before anything is known, and close above it after reports", () => {
  const estimate = inputEstimate();
  expect(estimate.tokens(model, text, 40_000)).toBeGreaterThan(13_000);
  for (let report = 0; report < 200; report++)
    estimate.observe(model, 40_000, noMedia, reported(report % 2 ? 9_800 : 10_200));
  const tokens = estimate.tokens(model, text, 40_000);
  expect(tokens).toBeGreaterThan(10_200);
  expect(tokens).toBeLessThan(11_000);
  expect(estimate.tokens({ id: "acme/other" }, text, 40_000)).toBeGreaterThan(13_000);
});

test("what some texts taught refuses no other text: an unlearned estimate bounds the learned one", () => {
  const estimate = inputEstimate();
  const nothing = { bytes: 0, tokens: 0 };
  for (let report = 0; report < 300; report++)
    estimate.observe(model, 20_000, noMedia, reported(report % 2 ? 4_900 : 5_100));
  for (let report = 0; report < 20; report++) estimate.observe(model, 120_000, noMedia, reported(120_000));
  const learned = estimate.tokens(model, text, 200_000);
  expect(learned).toBeGreaterThan(100_000);
  expect(estimate.unlearned(learned, 200_000, nothing)).toBe(inputEstimate().tokens(model, text, 200_000));
  expect(estimate.unlearned(40_000, 200_000, nothing)).toBe(40_000);
  expect(estimate.unlearned(90_000, 200_000, { bytes: 170_000, tokens: 1_600 })).toBe(10_000 + 1_600 + 16);
});

test("cached and written tokens are part of the prompt; guesses and media teach nothing", () => {
  const estimate = inputEstimate();
  const before = estimate.tokens(model, text, 3000);
  estimate.observe(model, 3000, noMedia, { ...reported(5), source: "estimated" });
  estimate.observe(model, 3000, { bytes: 26 }, reported(5));
  estimate.observe(model, 0, noMedia, reported(5));
  estimate.observe(model, 3000, noMedia, reported(0));
  expect(estimate.tokens(model, text, 3000)).toBe(before);
  estimate.observe(model, 3000, noMedia, { ...reported(100), cachedInputTokens: 2_900 });
  expect(estimate.tokens(model, text, 3000)).toBeGreaterThan(3000);
});

test("an image counts a fixed number whatever its bytes, and no report makes an estimate absurd", () => {
  const estimate = inputEstimate();
  const url = `data:image/png;base64,${"A".repeat(1_000_000)}`;
  const tokens = estimate.tokens(model, requestOf({ kind: "image", url }), url.length + 300);
  expect(tokens).toBeGreaterThanOrEqual(imageTokens);
  expect(tokens).toBeLessThan(imageTokens + 200);
  for (const mad of [1e300, Number.POSITIVE_INFINITY, Number.NaN, -4])
    estimate.observe(model, 100, noMedia, reported(mad));
  expect(estimate.tokens(model, text, 100)).toBeLessThanOrEqual(200);
  expect(estimate.tokens(model, text, 0)).toBeGreaterThanOrEqual(1);
});

test("what is expected lies at what was reported, below the hold, and never at nothing", () => {
  const estimate = inputEstimate();
  const nothing = { bytes: 0, tokens: 0 };
  expect(Math.abs(estimate.expected(model, nothing, 4000) - 1000)).toBeLessThan(20);
  for (let report = 0; report < 200; report++) estimate.observe(model, 4000, noMedia, reported(report % 2 ? 780 : 820));
  expect(Math.abs(estimate.expected(model, nothing, 4000) - 800)).toBeLessThan(16);
  expect(estimate.expected(model, nothing, 4000)).toBeLessThan(estimate.tokens(model, text, 4000));
  expect(estimate.expected(model, { bytes: 3000, tokens: 50 }, 4000) - 250).toBeLessThan(10);
  expect(estimate.expected(model, { bytes: 9000, tokens: 0 }, 4000)).toBeLessThan(20);
  expect(estimate.expected({ id: "acme/other" }, { bytes: 0, tokens: 0 }, 0)).toBeGreaterThanOrEqual(1);
});

describe("what is expected of a greeting, whose body is names and settings for the most part,", () => {
  const nothing = { bytes: 0, tokens: 0 };
  const greetings = [
    '{"model":"qwen/qwen3-32b","messages":[{"role":"user","content":"hello"}],"stream":true}',
    '{"model":"qwen/qwen3-32b","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"hello"}]}',
    '{"model":"qwen/qwen3-32b","temperature":1,"max_tokens":2048,"stream":true,"messages":[{"role":"user","content":"hello"}]}',
  ];

  test("is what templates take on average before the first report: not twice that", () => {
    for (const body of greetings) {
      const expected = inputEstimate().expected(model, nothing, body.length);
      expect(expected).toBeWithin(8, 21);
    }
  });

  // The template tokens of a plain chat template, of one with a date and a system prompt, and of one with a page of
  // rules.
  test.each([10, 36, 68, 300])(
    "is what an engine says of it, which is %d, beside an agent's large inputs",
    (tokens) => {
      const estimate = inputEstimate();
      for (let report = 0; report < 40; report++) {
        estimate.observe(model, greetings[1]!.length, noMedia, reported(tokens));
        estimate.observe(model, 60_000, noMedia, reported(15_000));
      }
      for (const body of greetings)
        expect(Math.abs(estimate.expected(model, nothing, body.length) - tokens)).toBeLessThan(
          Math.max(6, tokens / 10),
        );
      expect(Math.abs(estimate.expected(model, nothing, 60_000) - 15_000)).toBeLessThan(600);
      expect(estimate.tokens(model, text, greetings[1]!.length)).toBeGreaterThan(tokens);
      expect(estimate.tokens(model, text, 60_000)).toBeWithin(15_000, 17_000);
    },
  );
});

test("what is learned is bounded: the model that was learned longest ago makes room", () => {
  const estimate = inputEstimate({ ratio_initial: 1, models_max: 2 });
  for (const id of ["a/a", "b/b", "c/c"]) estimate.observe({ id }, 10_000, noMedia, reported(1_000));
  expect(estimate.tokens({ id: "a/a" }, text, 10_000)).toBeGreaterThan(9_000);
  expect(estimate.tokens({ id: "c/c" }, text, 10_000)).toBeLessThan(2_000);
});

test("what is written down is what was learned since, and of a model that made room nothing", () => {
  const { observe, ratios } = inputEstimate({ ratio_initial: 1, models_max: 2 });
  const written = () => [...ratios.changes().keys()];
  for (const id of ["a/a", "b/b", "c/c"]) observe({ id }, 10_000, noMedia, reported(1_000));
  expect(written()).toEqual(["b/b", "c/c"]);
  expect(written()).toEqual([]);
  ratios.unwritten(["a/a", "b/b"]);
  observe({ id: "c/c" }, 10_000, noMedia, reported(1_000));
  expect(written()).toEqual(["b/b", "c/c"]);
  const more = inputEstimate({ ratio_initial: 1, models_max: 2 });
  for (const id of ["a/a", "b/b", "c/c"]) more.ratios.recall(id, { ratio: 0.1, spread: 0, bytes: 1_000, template: 8 });
  expect(more.tokens({ id: "a/a" }, text, 10_000)).toBeLessThan(2_000);
  expect(more.tokens({ id: "c/c" }, text, 10_000)).toBeGreaterThan(9_000);
  expect([...more.ratios.changes()]).toEqual([]);
});
