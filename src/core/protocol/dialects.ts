/**
 * The dialects of engines, by their names in sluice.yaml: one row of data each. No other file knows an engine by its
 * name (test/house/dialects.test.ts). `generic` is for engines that are not in the table, and reads whatever any engine
 * is known to send. docs/engines.md says of each row where its facts are from.
 */
import type { Dialect, Signs } from "./dialect.ts";
import { anyEnds } from "./dialects/ends.ts";
import { anyRefusals } from "./dialects/refusals.ts";
import { anyUsage } from "./dialects/usage.ts";
import { samplingFields } from "./engine-fields.ts";

/** The name of a row is the dialect's mark. */
type Row = Omit<Dialect, "mark">;

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

const noSigns: Signs = { owners: [], hosts: [], page: null };
const noLoad: Dialect["load"] = { waiting: [], cache: [], generated: [] };

const generic: Row = {
  reasoning: { out: ["reasoning_content"], in: ["reasoning_content", "reasoning"] },
  unsignedThoughts: false,
  cap: "max_tokens",
  cap_min: {},
  // Most engines have three levels of reasoning effort, and a value that turns reasoning off.
  effort: {
    none: "none",
    minimal: "low",
    low: "low",
    medium: "medium",
    high: "high",
    xhigh: "high",
    max: "high",
  },
  summarizes: false,
  finishReasons: anyEnds,
  carries: [googleSignature, reasoningDetails],
  strips: [],
  bounds: unbounded,
  severalTexts: "listed",
  originalImages: false,
  schemas: "as they come",
  namedTool: "alone",
  callBeforeText: "text first",
  wholeMessages: false,
  usage: anyUsage,
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
    generated: ["vllm:generation_tokens_total", "sglang:generation_tokens_total", "llamacpp:tokens_predicted_total"],
  },
  completions: { suffix: "none", echo: true, logprobs: true },
  sampling: [],
  signs: noSigns,
};

/** The fields that the rows of engines that operators run themselves have in common. */
const own: Row = { ...generic, carries: [], strips: ["cache_control.ttl", "thinking.empty"] };

/**
 * The fields that the rows of hosted services have in common. Somebody other than the operator runs these services: they offer no
 * metrics, and refuse the reasoning of other engines.
 */
const hosted: Row = {
  ...generic,
  reasoning: { ...generic.reasoning, out: [] },
  carries: [],
  strips: own.strips,
  bounds: hostedBounds,
  schemas: "mended",
  namedTool: "name",
  load: noLoad,
};

const openai: Row = {
  ...hosted,
  cap: "max_completion_tokens",
  cap_min: { "openai-responses": 16 },
  summarizes: true,
  originalImages: true,
  effort: { ...generic.effort, max: null },
  signs: { ...noSigns, hosts: ["api.openai.com"] },
};

const rows = {
  generic,
  vllm: {
    ...own,
    // vLLM 0.32 reads either name of the reasoning field, and only one if both are there. Its main branch reads the
    // first, older versions the second.
    reasoning: { ...own.reasoning, out: ["reasoning", "reasoning_content"] },
    unsignedThoughts: true,
    effort: { ...own.effort, max: "max" },
    bounds: { ...unbounded, stops_max: 4 },
    namedTool: "name",
    load: {
      waiting: ["vllm:num_requests_waiting"],
      cache: ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
      generated: ["vllm:generation_tokens_total"],
    },
    sampling: samplingFields,
    signs: { ...noSigns, owners: ["vllm"] },
  },
  sglang: {
    ...own,
    namedTool: "name",
    load: {
      waiting: ["sglang:num_queue_reqs"],
      cache: ["sglang:token_usage"],
      generated: ["sglang:generation_tokens_total"],
    },
    sampling: samplingFields,
    signs: { ...noSigns, owners: ["sglang"] },
  },
  // llama.cpp treats a tool choice that names a tool as `auto`.
  "llama.cpp": {
    ...own,
    unsignedThoughts: true,
    load: {
      waiting: ["llamacpp:requests_deferred"],
      cache: ["llamacpp:kv_cache_usage_ratio"],
      generated: ["llamacpp:tokens_predicted_total"],
    },
    // llama.cpp ignores `echo`, and its log probabilities have the form that chat completions have.
    completions: { suffix: "infill", echo: false, logprobs: false },
    // llama.cpp has another name for `repetition_penalty`.
    sampling: samplingFields.filter((name) => name !== "repetition_penalty"),
    signs: { ...noSigns, owners: ["llamacpp"] },
  },
  ollama: {
    ...own,
    reasoning: { ...own.reasoning, out: ["reasoning"] },
    completions: { suffix: "passed", echo: false, logprobs: false },
    load: noLoad,
    signs: { ...noSigns, owners: ["library"], page: { path: "/api/version", form: /^\{"version":"[\d.]+/ } },
  },
  // transformers reads either the text or the tool calls of a message, not both.
  transformers: {
    ...own,
    reasoning: { ...own.reasoning, out: [] },
    stopsForLeaver: { streamed: true, whole: false },
    load: noLoad,
    signs: { ...noSigns, page: { path: "/openapi.json", form: /"\/load_model".*"\/reset"/ } },
  },
  openai,
  azure: { ...openai, originalImages: false, signs: { ...noSigns, hosts: ["openai.azure.com"] } },
  gemini: {
    ...hosted,
    signs: { ...noSigns, hosts: ["generativelanguage.googleapis.com"] },
    carries: [googleSignature],
    bounds: { ...hostedBounds, tools_max: 512, nameForm: /^[a-zA-Z0-9_.:-]+$/, stops_max: 5 },
  },
  // DeepSeek reads the content of a message only as a string. It has two levels of reasoning effort, with a value for
  // each.
  deepseek: {
    ...hosted,
    signs: { ...noSigns, hosts: ["api.deepseek.com"] },
    reasoning: generic.reasoning,
    severalTexts: "joined",
    completions: { suffix: "passed", echo: true, logprobs: true },
    effort: { ...generic.effort, minimal: "high", low: "high", medium: "high", xhigh: "max", max: "max" },
    bounds: { ...hostedBounds, stops_max: 16 },
  },
  mistral: {
    ...hosted,
    bounds: unbounded,
    signs: { ...noSigns, hosts: ["api.mistral.ai"] },
  },
  groq: {
    ...hosted,
    signs: { ...noSigns, hosts: ["api.groq.com"] },
  },
  openrouter: {
    ...hosted,
    signs: { ...noSigns, hosts: ["openrouter.ai"] },
    reasoning: { ...hosted.reasoning, out: ["reasoning"] },
    carries: [reasoningDetails],
    effort: { ...generic.effort, minimal: "minimal", xhigh: "xhigh", max: "xhigh" },
    bounds: unbounded,
  },
  anthropic: {
    ...hosted,
    signs: { ...noSigns, hosts: ["api.anthropic.com"] },
    strips: [],
    bounds: { ...unbounded, name_characters_max: 128, nameForm: plainName },
    schemas: "as they come",
    wholeMessages: true,
  },
  litellm: {
    ...own,
    namedTool: "name",
    load: noLoad,
    signs: { ...noSigns, page: { path: "/health/liveliness", form: /^"I'm alive!"/ } },
  },
} satisfies Record<string, Row>;

export type DialectName = keyof typeof rows;
export const dialectNames = Object.keys(rows) as DialectName[];
export const dialects = Object.fromEntries(dialectNames.map((mark) => [mark, { mark, ...rows[mark] }])) as Record<
  DialectName,
  Dialect
>;
