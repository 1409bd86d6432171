/**
 * Turns an engine's report into usage. A half of the report (input or output) whose counts are not valid is 0 in the
 * usage, and is marked as rejected with the engine's own values. Whether valid counts are plausible is decided in
 * src/core/usage/report.ts.
 */
import type { RejectedReport, ReportFlaw, ReportFlaws, Usage } from "../inference/usage.ts";
import { isGiven } from "./json.ts";

/** The engine's value of each count; null or undefined if it gave none. */
export type ReportedValues = Partial<Record<"prompt" | "cached" | "written" | "output" | "reasoning", unknown>>;

export interface Report {
  usage: Usage;
  rejected?: RejectedReport;
}

/**
 * Makes the report; null if there is neither a prompt nor an output count. `inclusive`: whether the prompt includes
 * cached and written tokens.
 */
export function reportOf(values: ReportedValues, { inclusive }: { inclusive: boolean }): Report | null {
  if (!isGiven(values.prompt) && !isGiven(values.output)) return null;
  const [prompt, cached, written, output, reasoning] = [
    countOf(values.prompt),
    countOf(values.cached ?? 0),
    countOf(values.written ?? 0),
    countOf(values.output),
    countOf(values.reasoning ?? 0),
  ];
  const inputFlaw = flawOf(values.prompt, prompt, [cached, written], inclusive);
  const outputFlaw = flawOf(values.output, output, [reasoning], true);
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
  return { usage, rejected: { ...flaws, said: printable(values) } };
}

/** Turns a number that is written as text, as some engines do, into a number. Other values are returned unchanged. */
export function plainCount(value: unknown): unknown {
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
}

/** Whether the value is a whole number from 0 to 2^53 - 1. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function countOf(said: unknown): number | null {
  const value = plainCount(said);
  return isCount(value) ? value : null;
}

function flawOf(
  value: unknown,
  whole: number | null,
  parts: readonly (number | null)[],
  areInside: boolean,
): ReportFlaw | null {
  if (!isGiven(value)) return "missing";
  if (whole === null || parts.includes(null)) return "malformed";
  let sum = 0;
  for (const part of parts) sum += part!;
  return areInside && sum > whole ? "part_above_whole" : null;
}

const value_characters_max = 40;

/** The engine's values as short ASCII text, for people to read; it fits into any store. */
function printable(values: ReportedValues): Record<string, number | string> {
  const texts: Record<string, number | string> = {};
  for (const [name, value] of Object.entries(values)) {
    if (!isGiven(value)) continue;
    const isNumber = typeof value === "number" && Number.isFinite(value);
    texts[`${name}_tokens`] = isNumber
      ? value
      : String(JSON.stringify(value))
          .replace(/[^ -~]/g, "?")
          .slice(0, value_characters_max);
  }
  return texts;
}
