/** Translates `usage` of chat completions in both directions. Its prompt tokens include cached ones, unlike the centre's. */
import { promptTokens, type Usage } from "../../inference/usage.ts";
import type { Dialect } from "../dialect.ts";
import type { JsonObject } from "../json.ts";
import { usageReported } from "../openai-usage.ts";
import type { Report } from "../report.ts";
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

/** The usage in a reply or a chunk. */
export function decodeUsage(wire: JsonObject, { usage }: Dialect): Report | null {
  return usageReported(wire, usage, usage.chat);
}
