/** Writes `usage` of Responses, whose input tokens include cached ones, unlike those of `Usage`. */
import { promptTokens, type Usage } from "../../inference/usage.ts";
import type { ResponsesUsage } from "./contract.ts";

/** Writes all keys always: Codex treats a usage without its totals as a broken answer. */
export function encodeUsage(usage: Usage): ResponsesUsage {
  const input = promptTokens(usage);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.cachedInputTokens, cache_write_tokens: usage.cacheWriteTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: input + usage.outputTokens,
  };
}
