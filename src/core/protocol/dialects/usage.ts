/** The places of token counts in the answers of engines: docs/engines.md, What engines report. */
import type { CountPlaces, FieldPath, UsageRow } from "../dialect.ts";

const at = (path: string): FieldPath => path.split(".");
const one = (...paths: string[]) => paths.map((path) => [at(path)]);

/**
 * The places of token counts in a protocol, given its words for input and output, such as `prompt` in `prompt_tokens`.
 */
function places(input: string, output: string): CountPlaces {
  return {
    // llama.cpp sends its timings next to the usage object, and on every chunk if they are requested.
    prompt: [...one(`usage.${input}_tokens`), [at("timings.prompt_n"), at("timings.cache_n")]],
    cached: one(
      `usage.${input}_tokens_details.cached_tokens`,
      "usage.prompt_cache_hit_tokens",
      "usage.cached_tokens",
      "timings.cache_n",
    ),
    written: one(
      `usage.${input}_tokens_details.cache_write_tokens`,
      `usage.${input}_tokens_details.cache_creation_input_tokens`,
      // This is vLLM's name for the count, in the place within the usage object where LiteLLM puts it.
      `usage.${input}_tokens_details.created_cache_tokens`,
      "usage.cache_creation_input_tokens",
    ),
    output: one(`usage.${output}_tokens`, "timings.predicted_n"),
    reasoning: one(`usage.${output}_tokens_details.reasoning_tokens`, "usage.reasoning_tokens"),
  };
}

export const anyUsage: UsageRow = {
  objects: [["usage"], ["choices", 0, "usage"], ["x_groq", "usage"]],
  beside: ["timings"],
  chat: places("prompt", "completion"),
  responses: places("input", "output"),
  promptIncludesCached: true,
};
