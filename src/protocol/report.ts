/**
 * Turns an engine's report into usage. If the input or the output of a report is no count, it is 0 in the usage, and named as
 * rejected with the engine's own values. Whether a count can be true is judged in src/usage/report.ts.
 */
import type { RejectedReport, ReportFlaw, ReportFlaws, Usage } from "../inference/usage.ts";

/** The engine's value for each count. Null and undefined mean that it gave none. */
export interface ReportWords {
  prompt: unknown;
  cached: unknown;
  written: unknown;
  output: unknown;
  reasoning: unknown;
}

export interface Report {
  usage: Usage;
  rejected?: RejectedReport;
}

/** `inclusive`: the prompt includes cached and written tokens. Null if neither input nor output is given: there is no report. */
export function reportOf(words: ReportWords, { inclusive }: { inclusive: boolean }): Report | null {
  if (!isGiven(words.prompt) && !isGiven(words.output)) return null;
  const [prompt, cached, written, output, reasoning] = [
    countOf(words.prompt),
    countOf(words.cached ?? 0),
    countOf(words.written ?? 0),
    countOf(words.output),
    countOf(words.reasoning ?? 0),
  ];
  const inputFlaw = flawOf(words.prompt, prompt, [cached, written], inclusive);
  const outputFlaw = flawOf(words.output, output, [reasoning], true);
  const read = inputFlaw ? 0 : cached! + written!;
  const usage: Usage = {
    inputTokens: inputFlaw ? 0 : prompt! - (inclusive ? read : 0),
    cachedInputTokens: inputFlaw ? 0 : cached!,
    cacheWriteTokens: inputFlaw ? 0 : written!,
    outputTokens: outputFlaw ? 0 : output!,
    reasoningTokens: outputFlaw ? 0 : reasoning!,
    source: "reported",
  };
  if (!inputFlaw && !outputFlaw) return { usage };
  const flaws: ReportFlaws = {};
  if (inputFlaw) flaws.input = inputFlaw;
  if (outputFlaw) flaws.output = outputFlaw;
  return { usage, rejected: { ...flaws, said: printable(words) } };
}

/** The value if it is a whole number from 0 to 2^53 - 1, else null. */
function countOf(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;
}

function flawOf(
  word: unknown,
  whole: number | null,
  parts: readonly (number | null)[],
  areInside: boolean,
): ReportFlaw | null {
  if (!isGiven(word)) return "missing";
  if (whole === null || parts.includes(null)) return "malformed";
  let sum = 0;
  for (const part of parts) sum += part!;
  return areInside && sum > whole ? "part_above_whole" : null;
}

function isGiven(word: unknown): boolean {
  return word !== undefined && word !== null;
}

const word_characters_max = 40;

/** The engine's values, as short ASCII text: they are kept for people to read, and must fit into any store. */
function printable(words: ReportWords): Record<string, number | string> {
  const texts: Record<string, number | string> = {};
  for (const [name, word] of Object.entries(words)) {
    if (!isGiven(word)) continue;
    const isNumber = typeof word === "number" && Number.isFinite(word);
    texts[`${name}_tokens`] = isNumber
      ? word
      : String(JSON.stringify(word))
          .replace(/[^ -~]/g, "?")
          .slice(0, word_characters_max);
  }
  return texts;
}
