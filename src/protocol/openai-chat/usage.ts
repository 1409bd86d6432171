/** `usage` of chat completions, both ways. There, prompt tokens include cached ones; in the centre, classes are disjoint. */
import { promptTokens, type Usage } from "../../inference/usage.ts";
import { isObject } from "../json.ts";
import { type Report, reportOf } from "../report.ts";
import type { ChatUsage } from "./contract.ts";

export function encodeUsage(usage: Usage): ChatUsage {
  const prompt = promptTokens(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.outputTokens,
    total_tokens: prompt + usage.outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      ...(usage.cacheWriteTokens > 0 ? { cache_write_tokens: usage.cacheWriteTokens } : {}),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}

/** An explicit 0 stays 0; where neither half says anything it is no report. */
export function decodeUsage(value: unknown): Report | null {
  if (!isObject(value)) return null;
  const prompt = isObject(value.prompt_tokens_details) ? value.prompt_tokens_details : {};
  const output = isObject(value.completion_tokens_details) ? value.completion_tokens_details : {};
  const words = {
    prompt: value.prompt_tokens,
    cached: prompt.cached_tokens,
    written: prompt.cache_write_tokens,
    output: value.completion_tokens,
    reasoning: output.reasoning_tokens,
  };
  return reportOf(words, { inclusive: true });
}
