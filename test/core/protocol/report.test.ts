/**
 * Whatever an engine writes in place of a count, the result is a usage with valid counts, and a list of the problems
 * found.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { valuesOf } from "../../../src/core/protocol/anthropic-messages/usage.ts";
import { dialects } from "../../../src/core/protocol/dialects.ts";
import { usageReported } from "../../../src/core/protocol/openai-usage.ts";
import { type Report, reportOf } from "../../../src/core/protocol/report.ts";
import { forAll } from "./for-all.ts";

interface Said {
  prompt?: unknown;
  cached?: unknown;
  output?: unknown;
  reasoning?: unknown;
}

const protocols: Record<string, (said: Said) => Report | null> = {
  "chat completions": ({ prompt, cached, output, reasoning }) =>
    usageReported(
      {
        usage: {
          prompt_tokens: prompt,
          prompt_tokens_details: { cached_tokens: cached },
          completion_tokens: output,
          completion_tokens_details: { reasoning_tokens: reasoning },
        },
      },
      dialects.generic.usage,
      "chat",
    ),
  responses: ({ prompt, cached, output, reasoning }) =>
    usageReported(
      {
        usage: {
          input_tokens: prompt,
          input_tokens_details: { cached_tokens: cached },
          output_tokens: output,
          output_tokens_details: { reasoning_tokens: reasoning },
        },
      },
      dialects.generic.usage,
      "responses",
    ),
  messages: ({ prompt, cached, output, reasoning }) =>
    reportOf(
      valuesOf({
        input_tokens: prompt,
        cache_read_input_tokens: cached,
        output_tokens: output,
        output_tokens_details: { thinking_tokens: reasoning },
      }),
      { inclusive: false },
    ),
};

const mad = [-1, 0.5, "a dozen", "-12", 1e18, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, true, [], { tokens: 3 }];

describe.each(Object.entries(protocols))("a report of %s", (_, decode) => {
  test("that is whole has no flaw; nothing at all is no report", () => {
    const report = decode({ prompt: 20, cached: 5, output: 7, reasoning: 7 });
    expect(report).not.toHaveProperty("rejected");
    expect(report?.usage).toMatchObject({ cachedInputTokens: 5, outputTokens: 7, reasoningTokens: 7 });
    expect(decode({ prompt: 0, output: 0 })).not.toHaveProperty("rejected");
    for (const nothing of [{}, { prompt: null, output: null }, { cached: 5 }, { reasoning: 5 }])
      expect(decode(nothing)).toBeNull();
  });

  test.each(mad.map((word) => [JSON.stringify(word) ?? String(word), word]))("that says %s is malformed", (_, word) => {
    expect(decode({ prompt: word, output: 7 })).toMatchObject({
      usage: { inputTokens: 0, outputTokens: 7 },
      rejected: { input: "malformed" },
    });
    expect(decode({ prompt: 7, output: word })).toMatchObject({
      usage: { inputTokens: 7, outputTokens: 0 },
      rejected: { output: "malformed" },
    });
    expect(decode({ prompt: 7, output: 7, cached: word })?.rejected).toMatchObject({ input: "malformed" });
    expect(decode({ prompt: 7, output: 7, reasoning: word })?.rejected).toMatchObject({ output: "malformed" });
  });

  test("with a half missing says so", () => {
    expect(decode({ prompt: 7 })?.rejected).toEqual({ output: "missing", said: { prompt_tokens: 7 } });
    expect(decode({ output: 7 })?.rejected).toEqual({ input: "missing", said: { output_tokens: 7 } });
  });

  test("with a part above its whole says so", () => {
    expect(decode({ prompt: 7, output: 7, reasoning: 8 })?.rejected).toMatchObject({ output: "part_above_whole" });
  });

  test("with more cached tokens than the prompt has, has them beside it", () => {
    const cached = decode({ prompt: 7, output: 7, cached: 8 });
    expect(cached).not.toHaveProperty("rejected");
    expect(cached?.usage).toMatchObject({ inputTokens: 7, cachedInputTokens: 8 });
  });

  test("as text is one of counts", () => {
    expect(decode({ prompt: "500", output: "10" })?.usage).toMatchObject({ inputTokens: 500, outputTokens: 10 });
  });

  test("is made of counts, and its words are short printable ASCII, whatever stands there", () => {
    const word = fc.oneof(fc.jsonValue(), fc.constantFrom(...mad), fc.string({ unit: "binary" }));
    forAll([word, word, word, word], 300, (prompt, cached, output, reasoning) => {
      const report = decode({ prompt, cached, output, reasoning });
      if (!report) return;
      const { source, ...counts } = report.usage;
      expect(source).toBe("reported");
      for (const count of Object.values(counts)) expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
      expect(counts.reasoningTokens).toBeLessThanOrEqual(counts.outputTokens);
      for (const words of Object.values(report.rejected?.said ?? {}))
        expect(typeof words === "number" || /^[ -~]{0,40}$/.test(words)).toBe(true);
    });
  });
});
