/**
 * The default catalog: 31 open-weight models as their makers published them. Dates are those of the release; windows
 * and caps are in tokens. Where a maker names no cap or advised length for an answer, the window alone bounds it.
 *
 * Capabilities are what the model was made for: `structured_output` where the maker speaks of JSON, schemas or function
 * calling; `parallel_tools` where its format knows several calls in one turn (Llama 3 and gpt-oss do not); `logprobs`
 * where an answer is not preceded by reasoning, whose tokens would be mixed up with it.
 *
 * Prices are dollars for a million tokens. They are in proportion to the computation that a token needs, and are no
 * one's price list.
 */
import type { Model, Prices, TokenizerName } from "../core/inference/model.ts";
import type { Capability } from "../core/inference/request.ts";

/** The letters of capabilities, so that a model fits on a line. */
const abbreviations: Record<string, Capability> = {
  t: "tools",
  p: "parallel_tools",
  v: "vision",
  r: "reasoning",
  s: "structured_output",
  l: "logprobs",
  a: "audio_input",
};

type Row = [
  id: string,
  ownedBy: string,
  released: string,
  contextTokens: number,
  outputTokens_max: number | null,
  capabilities: string,
  input: number,
  output: number,
];

// biome-ignore format: a table is read by column
const rows: Row[] = [
  ["meta-llama/llama-3.1-8b-instruct",         "Meta",       "2024-07-23",   131_072,    null, "t---sl-",  0.02,  0.04],
  ["meta-llama/llama-3.2-11b-vision-instruct", "Meta",       "2024-09-25",   131_072,    null, "--v-sl-",  0.04,  0.06],
  ["meta-llama/llama-3.3-70b-instruct",        "Meta",       "2024-12-06",   131_072,    null, "t---sl-",  0.10,  0.30],
  ["meta-llama/llama-4-scout",                 "Meta",       "2025-04-05", 10_485_760,   null, "tpv-sl-",  0.08,  0.30],
  ["meta-llama/llama-4-maverick",              "Meta",       "2025-04-05", 1_048_576,    null, "tpv-sl-",  0.16,  0.60],
  ["qwen/qwen-2.5-7b-instruct",                "Alibaba",    "2024-09-19",   131_072,   8_192, "tp--sl-",  0.02,  0.06],
  ["qwen/qwen3-32b",                           "Alibaba",    "2025-04-29",    40_960,  32_768, "tp-rs--",  0.06,  0.20],
  ["qwen/qwen3-235b-a22b-2507",                "Alibaba",    "2025-07-21",   262_144,  16_384, "tp--sl-",  0.12,  0.48],
  ["qwen/qwen3-coder",                         "Alibaba",    "2025-07-22",   262_144,  65_536, "tp--sl-",  0.20,  0.80],
  ["qwen/qwen3-vl-235b-a22b-instruct",         "Alibaba",    "2025-09-23",   262_144,  32_768, "tpv-sl-",  0.16,  0.64],
  ["mistralai/mistral-small-3.2-24b-instruct", "Mistral AI", "2025-06-20",   131_072,    null, "tpv-sl-",  0.06,  0.18],
  ["mistralai/magistral-small-2509",           "Mistral AI", "2025-09-17",   131_072,    null, "tpvrs--",  0.08,  0.24],
  ["mistralai/voxtral-small-24b-2507",         "Mistral AI", "2025-07-15",    32_768,    null, "t---sla",  0.08,  0.24],
  ["google/gemma-2-9b-it",                     "Google",     "2024-06-27",     8_192,    null, "-----l-",  0.02,  0.06],
  ["google/gemma-3-27b-it",                    "Google",     "2025-03-12",   131_072,   8_192, "--v-sl-",  0.08,  0.16],
  ["deepseek/deepseek-r1-distill-llama-70b",   "DeepSeek",   "2025-01-20",   131_072,  32_768, "---r---",  0.10,  0.30],
  ["deepseek/deepseek-chat-v3-0324",           "DeepSeek",   "2025-03-24",   163_840,   8_192, "tp--sl-",  0.24,  0.90],
  ["deepseek/deepseek-r1-0528",                "DeepSeek",   "2025-05-28",   163_840,  65_536, "t--rs--",  0.30,  1.20],
  ["microsoft/phi-4",                          "Microsoft",  "2024-12-12",    16_384,    null, "-----l-",  0.04,  0.12],
  ["microsoft/phi-4-multimodal-instruct",      "Microsoft",  "2025-02-26",   131_072,    null, "t-v--la",  0.04,  0.08],
  ["openai/gpt-oss-20b",                       "OpenAI",     "2025-08-05",   131_072,    null, "t--rs--",  0.02,  0.10],
  ["openai/gpt-oss-120b",                      "OpenAI",     "2025-08-05",   131_072,    null, "t--rs--",  0.06,  0.24],
  ["z-ai/glm-4.5-air",                         "Z.ai",       "2025-07-28",   131_072,  98_304, "tp-rs--",  0.10,  0.50],
  ["z-ai/glm-4.6",                             "Z.ai",       "2025-09-30",   202_752, 131_072, "tp-rs--",  0.20,  0.80],
  ["moonshotai/kimi-k2-0905",                  "Moonshot AI", "2025-09-05",  262_144,    null, "tp--sl-",  0.24,  0.96],
  ["moonshotai/kimi-k2-thinking",              "Moonshot AI", "2025-11-06",  262_144,    null, "tp-rs--",  0.24,  0.96],
  ["allenai/olmo-2-0325-32b-instruct",         "Ai2",        "2025-03-13",     4_096,    null, "-----l-",  0.06,  0.18],
  ["allenai/olmo-3-32b-think",                 "Ai2",        "2025-11-20",    65_536,  32_768, "---r---",  0.08,  0.24],
  ["ibm-granite/granite-4.0-h-small",          "IBM",        "2025-10-02",   131_072,    null, "tp--sl-",  0.04,  0.16],
  ["cohere/command-a",                         "Cohere",     "2025-03-13",   256_000,   8_192, "tp--sl-",  0.30,  1.20],
  ["nvidia/nemotron-nano-9b-v2",               "NVIDIA",     "2025-08-18",   131_072,    null, "t--rs--",  0.02,  0.08],
];

/**
 * The tokenizers of models whose vocabulary and chat template the service has (src/features/tokenizers). The tokens of
 * other models are estimated.
 */
const tokenizers: Record<string, TokenizerName> = {
  "openai/gpt-oss-20b": "o200k_harmony",
  "openai/gpt-oss-120b": "o200k_harmony",
  "meta-llama/llama-3.1-8b-instruct": "llama3",
  "meta-llama/llama-3.3-70b-instruct": "llama3",
};

/**
 * Input that is read from a cache costs a tenth of the input price, and input that is written to a cache a quarter more
 * than it.
 */
function pricesOf(input: number, output: number): Prices {
  const picos = (dollars: number) => Math.round(dollars * 1_000_000);
  return {
    input: picos(input),
    cachedInput: picos(input / 10),
    cacheWrite: picos((input * 5) / 4),
    output: picos(output),
  };
}

export function defaultModels(): Model[] {
  return rows.map(([id, ownedBy, released, contextTokens, outputTokens_max, capabilities, input, output]) => ({
    id,
    ownedBy,
    created: Date.parse(`${released}T00:00:00Z`) / 1000,
    contextTokens,
    outputTokens_max: outputTokens_max ?? contextTokens,
    capabilities: new Set([...capabilities].flatMap((letter) => abbreviations[letter] ?? [])),
    prices: pricesOf(input, output),
    ...(tokenizers[id] === undefined ? {} : { tokenizer: tokenizers[id] }),
    extraParams: [],
  }));
}
