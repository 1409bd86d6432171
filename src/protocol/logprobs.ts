/** Log probabilities as engines of both OpenAI protocols report them. */
import type { TokenLogprob } from "../inference/event.ts";
import { isObject, type JsonObject, textOf } from "./json.ts";

export function logprobsOf(value: unknown): TokenLogprob[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isObject).map((one) => ({
    ...logprobOf(one),
    top_logprobs: Array.isArray(one.top_logprobs) ? one.top_logprobs.filter(isObject).map(logprobOf) : [],
  }));
}

function logprobOf(value: JsonObject) {
  const bytes = Array.isArray(value.bytes)
    ? value.bytes.filter((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256)
    : null;
  // JSON has no -Infinity: engines that mean it send null, or a very small number.
  const logprob = typeof value.logprob === "number" ? value.logprob : -9999;
  return { token: textOf(value.token), logprob, bytes };
}
