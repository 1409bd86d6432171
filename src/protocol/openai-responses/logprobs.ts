/** Log probabilities as an engine says them; whatever is no number is told as the least there is. */
import type { TokenLogprob } from "../../inference/event.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";

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
  return { token: textOf(value.token), logprob: typeof value.logprob === "number" ? value.logprob : -9999, bytes };
}
