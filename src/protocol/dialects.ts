/**
 * The dialects of engines, by their names in sluice.yaml: one row of data each. No other file knows an engine by its name
 * (test/house/dialects.test.ts). `generic` is for engines that are not here, and reads what any of them is known to send.
 */
import type { Dialect } from "./dialect.ts";
import { anyEnds } from "./dialects/ends.ts";
import { anyRefusals } from "./dialects/refusals.ts";
import { anyUsage } from "./dialects/usage.ts";

const generic: Dialect = {
  reasoning: { out: ["reasoning_content"], in: ["reasoning_content", "reasoning"] },
  cap: "max_tokens",
  effort: {
    none: "none",
    minimal: "low",
    low: "low",
    medium: "medium",
    high: "high",
    xhigh: "high",
    max: "high",
  },
  finishReasons: anyEnds,
  carries: [],
  strips: [],
  bounds: {
    tools_max: Number.POSITIVE_INFINITY,
    name_characters_max: Number.POSITIVE_INFINITY,
    nameForm: /^[\x21-\x7e]+$/,
    stops_max: Number.POSITIVE_INFINITY,
  },
  schemas: "as they come",
  namedTool: "alone",
  callBeforeText: "kept",
  usage: anyUsage,
  media: ["image", "file", "audio"],
  refusals: anyRefusals,
  stopsForLeaver: { streamed: true, whole: true },
  load: {
    waiting: ["vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred"],
    cache: [
      "vllm:kv_cache_usage_perc",
      "vllm:gpu_cache_usage_perc",
      "sglang:token_usage",
      "llamacpp:kv_cache_usage_ratio",
    ],
  },
};

export const dialects = {
  generic,
  vllm: generic,
  sglang: generic,
  "llama.cpp": generic,
  ollama: generic,
  openai: generic,
  azure: generic,
  gemini: generic,
  deepseek: generic,
  mistral: generic,
  groq: generic,
  openrouter: generic,
  anthropic: generic,
  litellm: generic,
} satisfies Record<string, Dialect>;

export type DialectName = keyof typeof dialects;
export const dialectNames = Object.keys(dialects) as DialectName[];
