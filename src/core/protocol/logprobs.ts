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
  return { token: textOf(value.token).toWellFormed(), logprob, bytes };
}

/**
 * The log probabilities of the answer's text. An engine may also send those of its reasoning and of its markers: the
 * last run of tokens that spells the text counts. All are returned if none spells it, as with half a character.
 */
export function ofText(tokens: TokenLogprob[], text: string): TokenLogprob[] {
  if (tokens.length === 1 && tokens[0]!.token === text) return tokens;
  const pieces = tokens.map(({ token, bytes }) => (bytes ? Buffer.from(bytes) : Buffer.from(token)));
  const spelled = Buffer.from(text);
  const start = Buffer.concat(pieces).lastIndexOf(spelled);
  if (start < 0) return tokens;
  let at = 0;
  return tokens.filter((_, index) => {
    const from = at;
    at += pieces[index]!.length;
    return from < start + spelled.length && (at > start || (at === from && from === start));
  });
}
