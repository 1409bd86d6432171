/** The reports of an engine that are accepted: the table of docs/metering.md, row by row. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { noUsage, type ReportFlaws, type Usage } from "../../../src/core/inference/usage.ts";
import {
  code_units_per_token_max,
  deltas_per_token_max,
  type Facts,
  rejectionOf,
} from "../../../src/core/usage/report.ts";

/**
 * A model with a context of 8,000 tokens, a request for at most 1,000 output tokens, and a stream of a hundred tokens.
 */
const facts: Facts = {
  contextTokens: 8_000,
  outputTokensCap: 1_000,
  deltas: 100,
  codeUnits: 400,
  countedTokens: 100,
  reportedTokens: 0,
};
const said = (change: Partial<Usage>): Usage => ({
  ...noUsage,
  inputTokens: 12,
  outputTokens: 100,
  source: "reported",
  ...change,
});

const honest: [string, Partial<Usage>, Partial<Facts>?][] = [
  ["what was forwarded", {}],
  ["reasoning that is never shown, up to the cap", { outputTokens: 1_000, reasoningTokens: 900 }],
  ["reasoning that is not told apart either", { outputTokens: 1_000 }],
  [
    "an answer past its cap, of which every token was seen",
    { outputTokens: 1_300 },
    { deltas: 1_300, countedTokens: 1_300 },
  ],
  ["a delta for each character", { outputTokens: 100 }, { deltas: 450, codeUnits: 450, countedTokens: 450 }],
  ["long tokens: a table of blanks", { outputTokens: 40 }, { deltas: 40, codeUnits: 1_000, countedTokens: 63 }],
  ["images, which no estimate foresees", { inputTokens: 7_900 }],
  ["a prompt from the cache", { inputTokens: 2, cachedInputTokens: 7_000, cacheWriteTokens: 500 }],
  ["an explicit 0 of the input", { inputTokens: 0 }],
  ["an explicit 0 of an answer that holds nothing", { outputTokens: 0 }, { deltas: 0, codeUnits: 0, countedTokens: 0 }],
  ["empty deltas and 0", { outputTokens: 0 }, { deltas: 3, codeUnits: 0, countedTokens: 3 }],
  ["more than before", { outputTokens: 100 }, { reportedTokens: 90 }],
  ["less input than at the start, where an estimate stood", { inputTokens: 5 }, { reportedTokens: 100 }],
];

test.each(honest)("taken as it is: %s", (_, usage, change = {}) => {
  expect(rejectionOf({ usage: said(usage) }, { ...facts, ...change })).toBeNull();
});

const lies: [string, Partial<Usage>, Partial<Facts>, ReportFlaws][] = [
  ["a 20-word answer of 5,000,000 tokens", { outputTokens: 5_000_000 }, {}, { output: "above_cap" }],
  ["one above the cap", { outputTokens: 1_001 }, {}, { output: "above_cap" }],
  ["2^53 - 1", { outputTokens: Number.MAX_SAFE_INTEGER }, {}, { output: "above_cap" }],
  ["more input than the context holds", { inputTokens: 8_001 }, {}, { input: "above_context" }],
  ["more cached than the context holds", { cachedInputTokens: 1e9 }, {}, { input: "above_context" }],
  ["0 of an answer that was shown", { outputTokens: 0 }, {}, { output: "below_forwarded" }],
  ["0 of one word", { outputTokens: 0 }, { deltas: 1, codeUnits: 2, countedTokens: 1 }, { output: "below_forwarded" }],
  ["1 of a hundred deltas", { outputTokens: 1 }, {}, { output: "below_forwarded" }],
  ["less than an eighth of the deltas", { outputTokens: 12 }, {}, { output: "below_forwarded" }],
  ["10 of a page in one delta", { outputTokens: 10 }, { deltas: 1, codeUnits: 4_000 }, { output: "below_forwarded" }],
  ["less than before", { outputTokens: 99 }, { reportedTokens: 100 }, { output: "decreasing" }],
  ["both halves", { inputTokens: 9e9, outputTokens: 9e9 }, {}, { input: "above_context", output: "above_cap" }],
];

test.each(lies)("not taken: %s", (_, usage, change, flaws) => {
  const rejected = rejectionOf({ usage: said(usage) }, { ...facts, ...change });
  expect(rejected).toEqual({ ...flaws, said: expect.objectContaining({ output_tokens: said(usage).outputTokens }) });
});

describe("of a report that is no count", () => {
  test("the codec's flaw and words stand, and the other half is judged all the same", () => {
    const words = { prompt_tokens: 9e9, output_tokens: '"12"' };
    const rejected = rejectionOf(
      { usage: said({ inputTokens: 9e9, outputTokens: 0 }), rejected: { output: "malformed", said: words } },
      facts,
    );
    expect(rejected).toEqual({ input: "above_context", output: "malformed", said: words });
  });
});

test("docs/metering.md has each kind and each factor", () => {
  const page = readFileSync(join(import.meta.dir, "../../../docs/metering.md"), "utf8");
  for (const kind of [
    ...["malformed", "missing", "part_above_whole", "above_context"],
    ...["above_cap", "below_forwarded", "decreasing"],
  ])
    expect(page).toContain(`| \`${kind}\` |`);
  expect(page).toContain(
    `one token for ${deltas_per_token_max} deltas, or one for ${code_units_per_token_max} code units`,
  );
});
