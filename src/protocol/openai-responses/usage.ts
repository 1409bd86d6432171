/** `usage` of Responses, both ways. There, input tokens include cached ones; in the centre, classes are disjoint. */
import { promptTokens, type Usage } from "../../inference/usage.ts";
import { countOf, isObject } from "../json.ts";
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

/** An explicit 0 stays 0; what is no report (absent, null, not numbers) is null. Parts never exceed their whole. */
export function decodeUsage(value: unknown): Usage | null {
  if (!isObject(value)) return null;
  const input = countOf(value.input_tokens);
  const output = countOf(value.output_tokens);
  if (input === null && output === null) return null;
  const inputDetails = isObject(value.input_tokens_details) ? value.input_tokens_details : {};
  const outputDetails = isObject(value.output_tokens_details) ? value.output_tokens_details : {};
  const cached = Math.min(countOf(inputDetails.cached_tokens) ?? 0, input ?? 0);
  const written = Math.min(countOf(inputDetails.cache_write_tokens) ?? 0, (input ?? 0) - cached);
  return {
    inputTokens: (input ?? 0) - cached - written,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    outputTokens: output ?? 0,
    reasoningTokens: Math.min(countOf(outputDetails.reasoning_tokens) ?? 0, output ?? 0),
    source: "reported",
  };
}
