/** The usage that engines of both OpenAI protocols report. They differ in the names of two classes of tokens. */
import type { Usage } from "../inference/usage.ts";
import { countOf, isObject } from "./json.ts";

/**
 * `input` and `output`: what the protocol calls them, such as `prompt` of `prompt_tokens`. An explicit 0 stays 0; what is
 * no report (absent, null, not numbers) is null. Parts never exceed their whole.
 */
export function usageReported(value: unknown, input: string, output: string): Usage | null {
  if (!isObject(value)) return null;
  const allInput = countOf(value[`${input}_tokens`]);
  const allOutput = countOf(value[`${output}_tokens`]);
  if (allInput === null && allOutput === null) return null;
  const inputDetails = detailsOf(value[`${input}_tokens_details`]);
  const outputDetails = detailsOf(value[`${output}_tokens_details`]);
  const cached = Math.min(countOf(inputDetails.cached_tokens) ?? 0, allInput ?? 0);
  const written = Math.min(countOf(inputDetails.cache_write_tokens) ?? 0, (allInput ?? 0) - cached);
  return {
    inputTokens: (allInput ?? 0) - cached - written,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    outputTokens: allOutput ?? 0,
    reasoningTokens: Math.min(countOf(outputDetails.reasoning_tokens) ?? 0, allOutput ?? 0),
    source: "reported",
  };
}

function detailsOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}
