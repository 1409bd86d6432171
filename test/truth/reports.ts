/** Writes any usage in the form in which each dialect of test/core/protocol/dialects.ts reports it. */
import type { Usage } from "../../src/core/inference/usage.ts";
import { promptTokens } from "../../src/core/inference/usage.ts";

/** The fields of a report: `wire` is merged into the chunk or the response itself, `choice` into its choice. */
export interface Told {
  wire?: Record<string, unknown>;
  choice?: Record<string, unknown>;
}

export type Teller = (usage: Usage) => Told;

function openai(usage: Usage, more: object = {}): Record<string, unknown> {
  const prompt = promptTokens(usage);
  const { outputTokens } = usage;
  return { prompt_tokens: prompt, completion_tokens: outputTokens, total_tokens: prompt + outputTokens, ...more };
}

const details = (usage: Usage) => ({
  prompt_tokens_details: { cached_tokens: usage.cachedInputTokens, cache_write_tokens: usage.cacheWriteTokens },
  completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
});

/** The completion tokens without those of reasoning, which only the total includes. */
const beside = (usage: Usage) => ({ completion_tokens: usage.outputTokens - usage.reasoningTokens });

const timings = (usage: Usage) => ({
  timings: { cache_n: usage.cachedInputTokens, prompt_n: usage.inputTokens, predicted_n: usage.outputTokens },
});

const deepseek = ({ cachedInputTokens, inputTokens, reasoningTokens }: Usage) => ({
  prompt_cache_hit_tokens: cachedInputTokens,
  prompt_cache_miss_tokens: inputTokens,
  completion_tokens_details: { reasoning_tokens: reasoningTokens },
});

const moonshot = ({ cachedInputTokens }: Usage) => ({ cached_tokens: cachedInputTokens });

const dashscope = ({ cachedInputTokens, cacheWriteTokens, reasoningTokens }: Usage) => ({
  prompt_tokens_details: { cached_tokens: cachedInputTokens, cache_creation_input_tokens: cacheWriteTokens },
  completion_tokens_details: { reasoning_tokens: reasoningTokens },
});

export const tellers = {
  openai: (usage) => ({ wire: { usage: openai(usage, details(usage)) } }),
  deepseek: (usage) => ({ wire: { usage: openai(usage, deepseek(usage)) } }),
  moonshot: (usage) => ({ wire: { usage: openai(usage, moonshot(usage)) } }),
  "moonshot, in the choice": (usage) => ({ choice: { usage: openai(usage, moonshot(usage)) } }),
  dashscope: (usage) => ({ wire: { usage: openai(usage, dashscope(usage)) } }),
  groq: (usage) => ({ wire: { x_groq: { id: "req_1", usage: openai(usage) } } }),
  xai: (usage) => ({ wire: { usage: { ...openai(usage, details(usage)), ...beside(usage) } } }),
  gemini: (usage) => ({ wire: { usage: { ...openai(usage), ...beside(usage) } } }),
  "llama.cpp": (usage) => ({ wire: { usage: openai(usage), ...timings(usage) } }),
  "llama.cpp, timings_per_token": (usage) => ({ wire: timings(usage) }),
} satisfies Record<string, Teller>;
