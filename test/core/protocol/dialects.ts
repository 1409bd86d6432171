/**
 * Usage reports of engines, one row for each dialect (docs/engines.md, What engines report). `isRecorded`: the numbers
 * and fields are those of a published answer. The other rows follow the documents or the code of the engine's maker.
 */
import type { Usage } from "../../../src/core/inference/usage.ts";

export interface DialectFixture {
  engine: string;
  isRecorded?: true;
  source: string;
  /** The members in which the reply, or the chunk that ends a stream, reports usage in this dialect. */
  told: Record<string, unknown>;
  /** The further members, in the choice of that reply or chunk. */
  toldInChoice?: Record<string, unknown>;
  usage: Omit<Usage, "source">;
}

const counts = (
  inputTokens: number,
  outputTokens: number,
  more: { cached?: number; written?: number; reasoning?: number } = {},
): DialectFixture["usage"] => {
  const { cached = 0, written = 0, reasoning = 0 } = more;
  return {
    inputTokens,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    outputTokens,
    reasoningTokens: reasoning,
  };
};

const openai = (prompt: number, output: number, more: object = {}) => ({
  usage: { prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output, ...more },
});

/** The six usual dialects, which report with the same names, and then the others. */
export const dialectFixtures: DialectFixture[] = [
  {
    engine: "OpenAI",
    source: "platform.openai.com, API reference, the chat completion object",
    told: openai(2006, 300, {
      prompt_tokens_details: { cached_tokens: 1920, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 120, audio_tokens: 0 },
    }),
    usage: counts(86, 300, { cached: 1920, reasoning: 120 }),
  },
  {
    engine: "vLLM",
    source: "vllm/entrypoints/openai/protocol.py, UsageInfo",
    told: openai(40, 12, { prompt_tokens_details: { cached_tokens: 32 } }),
    usage: counts(8, 12, { cached: 32 }),
  },
  {
    engine: "vLLM, cache writes",
    source: "vllm/entrypoints/openai/protocol.py, PromptTokenUsageInfo",
    told: openai(40, 12, { prompt_tokens_details: { cached_tokens: 16, created_cache_tokens: 20 } }),
    usage: counts(4, 12, { cached: 16, written: 20 }),
  },
  {
    engine: "SGLang",
    source: "sglang/srt/entrypoints/openai/protocol.py, UsageInfo",
    told: openai(40, 12, { prompt_tokens_details: null, reasoning_tokens: 5 }),
    usage: counts(40, 12, { reasoning: 5 }),
  },
  {
    engine: "Ollama",
    source: "ollama/openai/openai.go, Usage",
    told: openai(40, 12),
    usage: counts(40, 12),
  },
  {
    engine: "TGI",
    source: "text-generation-inference/router/src/chat.rs, Usage",
    told: openai(40, 12),
    usage: counts(40, 12),
  },
  {
    engine: "OpenRouter",
    source: "openrouter.ai/docs, usage accounting",
    told: openai(194, 20, {
      prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 50 },
      completion_tokens_details: { reasoning_tokens: 7 },
      cost: 0.0001,
    }),
    usage: counts(44, 20, { cached: 100, written: 50, reasoning: 7 }),
  },
  {
    engine: "DeepSeek",
    source: "api-docs.deepseek.com, Create Chat Completion: prompt_tokens is the sum of hits and misses",
    told: openai(1234, 56, { prompt_cache_hit_tokens: 512, prompt_cache_miss_tokens: 722 }),
    usage: counts(722, 56, { cached: 512 }),
  },
  {
    engine: "Moonshot, a reply",
    source: "platform.moonshot.ai, Chat: usage.cached_tokens",
    told: openai(19, 21, { cached_tokens: 10 }),
    usage: counts(9, 21, { cached: 10 }),
  },
  {
    engine: "Moonshot, a stream",
    source: "platform.moonshot.ai, Chat: the last chunk has its usage within the choice",
    told: {},
    toldInChoice: openai(19, 13, { cached_tokens: 10 }),
    usage: counts(9, 13, { cached: 10 }),
  },
  {
    engine: "LiteLLM",
    source: "litellm/types/utils.py, Usage: prompt_tokens has what was read from the cache and written to it",
    told: openai(1234, 56, {
      prompt_tokens_details: { cached_tokens: 512 },
      cache_creation_input_tokens: 700,
      cache_read_input_tokens: 512,
    }),
    usage: counts(22, 56, { cached: 512, written: 700 }),
  },
  {
    engine: "DashScope",
    isRecorded: true,
    source: "alibabacloud.com, Model Studio, Context cache; the numbers are of a published answer of qwen",
    told: openai(29_719, 435, {
      completion_tokens_details: { reasoning_tokens: 382, text_tokens: 435 },
      prompt_tokens_details: {
        text_tokens: 29_719,
        cache_creation: { ephemeral_5m_input_tokens: 29_713 },
        cache_creation_input_tokens: 29_713,
        cache_type: "ephemeral",
        cached_tokens: 0,
      },
    }),
    usage: counts(6, 435, { written: 29_713, reasoning: 382 }),
  },
  {
    engine: "Groq, a stream",
    isRecorded: true,
    source: "vercel/ai, packages/groq: an answer of gemma2-9b-it",
    told: {
      x_groq: {
        id: "req_0",
        usage: {
          queue_time: 0.061,
          prompt_tokens: 18,
          prompt_time: 0.0002,
          completion_tokens: 439,
          completion_time: 0.798,
          total_tokens: 457,
          total_time: 0.798,
        },
      },
    },
    usage: counts(18, 439),
  },
  {
    engine: "xAI",
    source: "docs.cloud.google.com, Reasoning for Grok models: reasoning_tokens apart from completion_tokens",
    told: {
      usage: {
        prompt_tokens: 31,
        completion_tokens: 9,
        total_tokens: 150,
        prompt_tokens_details: { text_tokens: 31, cached_tokens: 6 },
        completion_tokens_details: { reasoning_tokens: 110, audio_tokens: 0 },
      },
    },
    usage: counts(25, 119, { cached: 6, reasoning: 110 }),
  },
  {
    engine: "Gemini",
    source: "mozilla-ai/any-llm issue 1290: an answer of gemini-2.5-flash, whose thoughts are in the total alone",
    told: { usage: { prompt_tokens: 20, completion_tokens: 198, total_tokens: 623 } },
    usage: counts(20, 603, { reasoning: 405 }),
  },
  {
    engine: "llama.cpp",
    source: "llama.cpp, server-task.cpp, result_timings::to_json",
    told: { ...openai(236, 35), timings: { cache_n: 200, prompt_n: 36, prompt_ms: 30.9, predicted_n: 35 } },
    usage: counts(36, 35, { cached: 200 }),
  },
  {
    engine: "llama.cpp, timings_per_token",
    source: "llama.cpp, the README of its server, timings_per_token",
    told: { timings: { cache_n: 200, prompt_n: 36, prompt_ms: 30.9, predicted_n: 35 } },
    usage: counts(36, 35, { cached: 200 }),
  },
];
