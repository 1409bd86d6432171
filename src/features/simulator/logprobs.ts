/** Generates log probabilities: each is a hash of the token and its index. */
import { hash } from "./text.ts";

export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[];
  top_logprobs: { token: string; logprob: number; bytes: number[] }[];
}

// biome-ignore format: a list of words is read by the line
const others = [
  " the", " a", ",", ".", " of", " and", " is", " to", " in", "水", "é", " water", " gate", " it", " not",
  " at", " on", " by", " one", " so", " as", " or",
];

/**
 * A token's log probability. `place`: the token's index in the answer. `top`: the number of alternatives, of which the
 * token itself is the first.
 */
export function logprobOf(token: string, place: number, top: number): TokenLogprob {
  const logprob = -(hash(token, place) % 20_000) / 10_000;
  const likely = { token, logprob, bytes: bytesOf(token) };
  const rest = others
    .filter((other) => other !== token)
    .slice(0, Math.max(0, top - 1))
    .map((other, rank) => ({
      token: other,
      logprob: Math.round((logprob - (rank + 1) * 0.75) * 10_000) / 10_000,
      bytes: bytesOf(other),
    }));
  return { ...likely, top_logprobs: top > 0 ? [likely, ...rest] : [] };
}

function bytesOf(text: string): number[] {
  return [...new TextEncoder().encode(text)];
}
