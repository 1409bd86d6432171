/**
 * Reads the usage and the log probabilities that engines of both OpenAI protocols report. Engines differ in the place
 * of the usage and in the names of its counts; the rows of their dialects name both (docs/engines.md, What engines
 * report).
 */
import type { TokenLogprob } from "../inference/event.ts";
import type { FieldPath, UsageRow } from "./dialect.ts";
import { isGiven, isObject, type JsonObject, textOf, valueAt } from "./json.ts";
import { isCount, plainCount, type Report, type ReportedValues, reportOf } from "./report.ts";

/**
 * The usage report in a complete reply or in a chunk; null if it has neither an input nor an output count. A count of 0
 * is a count, too.
 */
export function usageReported(wire: JsonObject, row: UsageRow, protocol: "chat" | "responses"): Report | null {
  let usage: unknown;
  for (const path of row.objects) if (!isObject(usage)) usage = valueAt(wire, path);
  if (!isObject(usage) && !row.beside.some((name) => isObject(wire[name]))) return null;
  const report: JsonObject = isObject(usage) && usage !== wire.usage ? { ...wire, usage } : wire;
  const places = row[protocol];
  const values: ReportedValues = {
    prompt: countAt(report, places.prompt),
    cached: countAt(report, places.cached),
    written: countAt(report, places.written),
    output: countAt(report, places.output),
    reasoning: countAt(report, places.reasoning),
  };
  const total = isObject(usage) ? plainCount(usage.total_tokens) : undefined;
  const inclusive = row.promptIncludesCached ? withCached(values, total) : values;
  return reportOf(withReasoning(inclusive, total), { inclusive: row.promptIncludesCached });
}

/** The value at the first of the places that has a value. The values of a place with several paths are added up. */
function countAt(report: JsonObject, places: readonly (readonly FieldPath[])[]): unknown {
  for (const paths of places) {
    const value = paths.length === 1 ? plainCount(valueAt(report, paths[0]!)) : sumAt(report, paths);
    if (isGiven(value)) return value;
  }
  return undefined;
}

function sumAt(report: JsonObject, paths: readonly FieldPath[]): number | undefined {
  const values = paths.map((path) => plainCount(valueAt(report, path)));
  return values.every(isCount) ? values.reduce((sum, one) => sum + one) : undefined;
}

/**
 * Adds the cached tokens to the prompt if the numbers prove that the prompt does not include them: there are more
 * cached tokens than the prompt has, or the total is larger by exactly their number.
 */
function withCached(values: ReportedValues, total: unknown): ReportedValues {
  const { prompt, output, cached = 0, written = 0, reasoning } = values;
  if (!isCount(prompt) || !isCount(cached) || !isCount(written)) return values;
  const apart = cached + written;
  const beside = isCount(total) && isCount(output) ? total - prompt - output : 0;
  const isProved = apart > prompt || (apart > 0 && beside === apart && reasoning !== beside);
  return isProved ? { ...values, prompt: prompt + apart } : values;
}

/**
 * Adds reasoning to the output if the engine counts it apart from the output. Only the total shows this. xAI also
 * reports the number of reasoning tokens; Gemini does not.
 */
function withReasoning(values: ReportedValues, total: unknown): ReportedValues {
  const { prompt, output, reasoning } = values;
  if (!isCount(total) || !isCount(prompt) || !isCount(output)) return values;
  const beside = total - prompt - output;
  if (beside <= 0 || (reasoning !== undefined && reasoning !== beside)) return values;
  return { ...values, output: output + beside, reasoning: beside };
}

/** Log probabilities as engines of both OpenAI protocols report them. */
export function logprobsOf(value: unknown): TokenLogprob[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isObject).map((one) => ({
    ...logprobOf(one),
    top_logprobs: Array.isArray(one.top_logprobs) ? one.top_logprobs.filter(isObject).map(logprobOf) : [],
  }));
}

function logprobOf(value: JsonObject) {
  const bytes = Array.isArray(value.bytes)
    ? value.bytes.filter((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256)
    : null;
  // JSON has no -Infinity: engines that mean it send null, or a very small number.
  const logprob = typeof value.logprob === "number" ? value.logprob : -9999;
  return { token: textOf(value.token).toWellFormed(), logprob, bytes };
}

/**
 * The log probabilities of the answer's text. An engine may also send those of its reasoning and of its markers, so the
 * last run of tokens that spells the text is taken. All are returned if no run spells it, as when the text has half a
 * character.
 */
export function ofText(tokens: TokenLogprob[], text: string): TokenLogprob[] {
  if (tokens.length === 1 && tokens[0]!.token === text) return tokens;
  const pieces = tokens.map(({ token, bytes }) => (bytes ? Buffer.from(bytes) : Buffer.from(token)));
  const spelled = Buffer.from(text);
  const start = Buffer.concat(pieces).lastIndexOf(spelled);
  if (start < 0) return tokens;
  let at = 0;
  return tokens.filter((_, index) => {
    const from = at;
    at += pieces[index]!.length;
    return from < start + spelled.length && (at > start || (at === from && from === start));
  });
}
