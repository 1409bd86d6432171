/** `usage` of Messages, both ways. Its classes are disjoint, as the centre's are: input excludes what was cached. */
import { promptTokens, type Usage } from "../../inference/usage.ts";
import { countOf, isObject } from "../json.ts";
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
 * A report, on top of the one before it: `message_delta` repeats only what changed, and totals overwrite. Null where
 * nothing in it is a count.
 */
export function decodeUsage(value: unknown, before: Usage | null): Usage | null {
  if (!isObject(value)) return null;
  const input = countOf(value.input_tokens);
  const cached = countOf(value.cache_read_input_tokens);
  const written = countOf(value.cache_creation_input_tokens);
  const output = countOf(value.output_tokens);
  if (input === null && cached === null && written === null && output === null) return null;
  const details = isObject(value.output_tokens_details) ? value.output_tokens_details : {};
  const outputTokens = output ?? before?.outputTokens ?? 0;
  const reasoning = countOf(details.thinking_tokens) ?? before?.reasoningTokens ?? 0;
  return {
    inputTokens: input ?? before?.inputTokens ?? 0,
    cachedInputTokens: cached ?? before?.cachedInputTokens ?? 0,
    cacheWriteTokens: written ?? before?.cacheWriteTokens ?? 0,
    outputTokens,
    reasoningTokens: Math.min(reasoning, outputTokens),
    source: "reported",
  };
}

/** Engines that do not know their input yet start with zeros, which are no report. */
export function saysNothing(usage: Usage): boolean {
  return promptTokens(usage) === 0;
}
