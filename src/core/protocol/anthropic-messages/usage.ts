/**
 * Translates `usage` of Messages in both directions. Its classes are disjoint, as in inference/usage.ts: input excludes
 * cached tokens.
 */
import { promptTokens, type Usage } from "../../inference/usage.ts";
import { isObject } from "../json.ts";
import { type Report, type ReportedValues, reportOf } from "../report.ts";
import type { MessagesUsage } from "./contract.ts";

export function encodeUsage(usage: Usage): MessagesUsage {
  return {
    input_tokens: usage.inputTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cachedInputTokens,
    output_tokens: usage.outputTokens,
    ...(usage.reasoningTokens > 0 ? { output_tokens_details: { thinking_tokens: usage.reasoningTokens } } : {}),
  };
}

/**
 * Merges a usage report into the earlier report: `message_delta` repeats only counts that changed, and they are totals.
 */
export function valuesOf(value: unknown, before: ReportedValues = {}): ReportedValues {
  if (!isObject(value)) return before;
  const details = isObject(value.output_tokens_details) ? value.output_tokens_details : {};
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = value;
  const first = input_tokens ?? cache_read_input_tokens ?? cache_creation_input_tokens ?? output_tokens;
  if (first === undefined || first === null) return before;
  return {
    prompt: input_tokens ?? before.prompt,
    cached: cache_read_input_tokens ?? before.cached,
    written: cache_creation_input_tokens ?? before.written,
    output: output_tokens ?? before.output,
    reasoning: details.thinking_tokens ?? before.reasoning,
  };
}

/** The report at the start of an answer, which has no output yet. An input of 0 does not count as a report. */
export function decodeEarlyUsage(values: ReportedValues): Report | null {
  const report = reportOf({ ...values, output: values.output ?? 0 }, { inclusive: false });
  return report && (report.rejected || promptTokens(report.usage) > 0) ? report : null;
}
