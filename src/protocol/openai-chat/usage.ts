/** `usage` of chat completions, both ways. There, prompt tokens include cached ones; in the centre, classes are disjoint. */
import { promptTokens, type Usage } from "../../inference/usage.ts";
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

/** The usage that a reply, or a chunk, reports. */
export function decodeUsage(wire: JsonObject): Report | null {
  return usageReported(wire, halves);
}

const halves = { input: "prompt", output: "completion" };
