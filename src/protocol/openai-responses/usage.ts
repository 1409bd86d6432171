/** `usage` of Responses, both ways. There, input tokens include cached ones; in the centre, classes are disjoint. */
import { promptTokens, type Usage } from "../../inference/usage.ts";
import { isObject } from "../json.ts";
import { type Report, reportOf } from "../report.ts";
import type { ResponsesUsage } from "./contract.ts";

/** All keys, always: Codex takes a usage without its totals for a broken answer. */
export function encodeUsage(usage: Usage): ResponsesUsage {
  const input = promptTokens(usage);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.cachedInputTokens, cache_write_tokens: usage.cacheWriteTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: input + usage.outputTokens,
  };
}

/** An explicit 0 stays 0; where neither half says anything it is no report. */
export function decodeUsage(value: unknown): Report | null {
  if (!isObject(value)) return null;
  const input = isObject(value.input_tokens_details) ? value.input_tokens_details : {};
  const output = isObject(value.output_tokens_details) ? value.output_tokens_details : {};
  const words = {
    prompt: value.input_tokens,
    cached: input.cached_tokens,
    written: input.cache_write_tokens,
    output: value.output_tokens,
    reasoning: output.reasoning_tokens,
  };
  return reportOf(words, { inclusive: true });
}
