/** The usage that engines of both OpenAI protocols report. They differ in the names of two classes of tokens. */
import { isObject } from "./json.ts";
import { type Report, reportOf } from "./report.ts";

/**
 * `input` and `output`: what the protocol calls them, such as `prompt` of `prompt_tokens`. An explicit 0 stays 0; where
 * neither half says anything it is no report.
 */
export function usageReported(value: unknown, input: string, output: string): Report | null {
  if (!isObject(value)) return null;
  const inputDetails = detailsOf(value[`${input}_tokens_details`]);
  const words = {
    prompt: value[`${input}_tokens`],
    cached: inputDetails.cached_tokens,
    written: inputDetails.cache_write_tokens,
    output: value[`${output}_tokens`],
    reasoning: detailsOf(value[`${output}_tokens_details`]).reasoning_tokens,
  };
  return reportOf(words, { inclusive: true });
}

function detailsOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}
