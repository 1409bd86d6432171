/** `usage` of chat completions, both ways. There, prompt tokens include cached ones; in the centre, classes are disjoint. */
import { promptTokens, type Usage } from "../../inference/usage.ts";
import { countOf, isObject } from "../json.ts";
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

/** An explicit 0 stays 0; what is no report (absent, null, not numbers) is null. Parts never exceed their whole. */
export function decodeUsage(value: unknown): Usage | null {
  if (!isObject(value)) return null;
  const prompt = countOf(value.prompt_tokens);
  const output = countOf(value.completion_tokens);
  if (prompt === null && output === null) return null;
  const promptDetails = isObject(value.prompt_tokens_details) ? value.prompt_tokens_details : {};
  const outputDetails = isObject(value.completion_tokens_details) ? value.completion_tokens_details : {};
  const cached = Math.min(countOf(promptDetails.cached_tokens) ?? 0, prompt ?? 0);
  const written = Math.min(countOf(promptDetails.cache_write_tokens) ?? 0, (prompt ?? 0) - cached);
  return {
    inputTokens: (prompt ?? 0) - cached - written,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    outputTokens: output ?? 0,
    reasoningTokens: Math.min(countOf(outputDetails.reasoning_tokens) ?? 0, output ?? 0),
    source: "reported",
  };
}
