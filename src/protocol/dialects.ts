/**
 * The dialects of engines, by their names in sluice.yaml: one row of data each. No other file knows an engine by its name
 * (test/house/dialects.test.ts). `generic` is for engines that are not here, and reads what any of them is known to send.
 * docs/engines.md says of each row how it is known.
 */
import type { CarriedField, Dialect } from "./dialect.ts";
import { anyEnds } from "./dialects/ends.ts";
import { anyRefusals } from "./dialects/refusals.ts";
import { anyUsage } from "./dialects/usage.ts";

const unbounded: Dialect["bounds"] = {
  tools_max: Number.POSITIVE_INFINITY,
  name_characters_max: Number.POSITIVE_INFINITY,
  nameForm: /^[\x21-\x7e]+$/,
  stops_max: Number.POSITIVE_INFINITY,
};
const plainName = /^[a-zA-Z0-9_-]+$/;
const hostedBounds = { tools_max: 128, name_characters_max: 64, nameForm: plainName, stops_max: 4 };

const googleSignature = { kind: "call", path: ["extra_content", "google", "thought_signature"] } as const;
const reasoningDetails = { kind: "message", path: ["reasoning_details"] } as const;

const generic: Dialect = {
  mark: "generic",
  reasoning: { out: ["reasoning_content"], in: ["reasoning_content", "reasoning"] },
  unsignedThoughts: false,
  cap: "max_tokens",
  // Engines know three levels and "none".
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
  carries: [googleSignature, reasoningDetails],
  strips: [],
  bounds: unbounded,
  schemas: "as they come",
  namedTool: "alone",
  callBeforeText: "text first",
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

/** An engine that its operator runs. */
const own: Dialect = { ...generic, carries: [], strips: ["cache_control.ttl", "thinking.empty"] };

/** A service that somebody else runs. It has no metrics, and refuses the thoughts of others. */
const hosted: Dialect = {
  ...generic,
  reasoning: { ...generic.reasoning, out: [] },
  carries: [],
  strips: own.strips,
  bounds: hostedBounds,
  schemas: "mended",
  namedTool: "name",
  load: { waiting: [], cache: [] },
};

const openai: Dialect = {
  ...hosted,
  mark: "openai",
  cap: "max_completion_tokens",
  effort: { ...generic.effort, max: null },
};

export const dialects = {
  generic,
  vllm: {
    ...own,
    mark: "vllm",
    // 0.32 reads either name, and one of them if both are there. Its main branch reads the first, older versions the second.
    reasoning: { ...own.reasoning, out: ["reasoning", "reasoning_content"] },
    unsignedThoughts: true,
    effort: { ...own.effort, max: "max" },
    bounds: { ...unbounded, stops_max: 4 },
    namedTool: "name",
    load: {
      waiting: ["vllm:num_requests_waiting"],
      cache: ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
    },
  },
  sglang: {
    ...own,
    mark: "sglang",
    namedTool: "name",
    load: { waiting: ["sglang:num_queue_reqs"], cache: ["sglang:token_usage"] },
  },
  // It takes a named choice for `auto`.
  "llama.cpp": {
    ...own,
    mark: "llama.cpp",
    unsignedThoughts: true,
    load: { waiting: ["llamacpp:requests_deferred"], cache: ["llamacpp:kv_cache_usage_ratio"] },
  },
  ollama: {
    ...own,
    mark: "ollama",
    reasoning: { ...own.reasoning, out: ["reasoning"] },
    load: { waiting: [], cache: [] },
  },
  openai,
  azure: { ...openai, mark: "azure" },
  gemini: {
    ...hosted,
    mark: "gemini",
    carries: [googleSignature],
    bounds: { ...hostedBounds, tools_max: 512, nameForm: /^[a-zA-Z0-9_.:-]+$/, stops_max: 5 },
  },
  // It has two modes of thinking, and words for both.
  deepseek: {
    ...hosted,
    mark: "deepseek",
    reasoning: generic.reasoning,
    effort: { ...generic.effort, minimal: "high", low: "high", medium: "high", xhigh: "max", max: "max" },
    bounds: { ...hostedBounds, stops_max: 16 },
  },
  mistral: { ...hosted, mark: "mistral", bounds: unbounded },
  groq: { ...hosted, mark: "groq" },
  openrouter: {
    ...hosted,
    mark: "openrouter",
    reasoning: { ...hosted.reasoning, out: ["reasoning"] },
    carries: [reasoningDetails],
    effort: { ...generic.effort, minimal: "minimal", xhigh: "xhigh", max: "xhigh" },
    bounds: unbounded,
  },
  anthropic: {
    ...hosted,
    mark: "anthropic",
    strips: [],
    bounds: { ...unbounded, name_characters_max: 128, nameForm: plainName },
    schemas: "as they come",
  },
  litellm: { ...own, mark: "litellm", namedTool: "name", load: { waiting: [], cache: [] } },
} satisfies Record<string, Dialect>;

/** The fields of all dialects for opaque values. */
export const carriedFields: readonly CarriedField[] = [googleSignature, reasoningDetails];

export type DialectName = keyof typeof dialects;
export const dialectNames = Object.keys(dialects) as DialectName[];
