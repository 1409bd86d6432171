// A script says how the engine must respond to a request, and is part of the request's prompt, so that the engine needs
// no other instructions. By the script's ID, the judge finds the request in the engine's list, whatever the gateway did
// to the request.

import type { Chance } from "./chance.ts";

export type Report =
  /** The engine reports its true usage, if the request asks for usage. */
  | "true"
  /** The engine reports no usage, as many engines do. */
  | "never"
  /** The engine reports a thousand times the tokens that the request allows. */
  | "impossible";

export interface Script {
  id: string;
  /** The number of tokens of the complete response, which is also the request's limit. */
  tokens: number;
  /** The time between two tokens, in milliseconds. */
  gap_ms: number;
  report: Report;
  /** The engine closes the connection after this many tokens. Null: never. */
  dies_after: number | null;
  /** The number of attempts that end with a closed connection. The attempt after these gets a complete response. */
  deaths: number;
}

const opening = "answer-as-told ";

/** The text of the prompt. The engine reports its length as prompt tokens. */
export function promptOf(script: Script): string {
  return `${opening}${JSON.stringify(script)}`;
}

/** The script (how the engine must respond) in a prompt; null if it has none. */
export function scriptIn(prompt: unknown): Script | null {
  if (typeof prompt !== "string" || !prompt.startsWith(opening)) return null;
  return JSON.parse(prompt.slice(opening.length)) as Script;
}

/** Common words preceded by a space, each of which is one token in the vocabularies in use. */
const words = [" time", " year", " people", " way", " day", " man", " thing", " woman", " life", " child", " world"];

/** The token at this index of a response. */
export function tokenAt(index: number): string {
  return words[index % words.length] as string;
}

/** The number of tokens in a text of `tokenAt`, however it was split into deltas. */
export function tokensIn(text: string): number {
  return text.split(" ").length - 1;
}

/**
 * Draws a script. In most scripts, the engine works correctly; in the others it dies, never reports its usage, or
 * reports a false one.
 */
export function drawScript(id: string, chance: Chance, tokens_max: number): Script {
  // Half of the responses are short, because most errors can occur at the end of a response.
  const tokens = chance.between(1, chance.fraction() < 0.5 ? Math.ceil(tokens_max / 8) : tokens_max);
  const kind = chance.fraction();
  return {
    id,
    tokens,
    gap_ms: chance.between(4, 30),
    report: kind < 0.7 ? "true" : kind < 0.9 ? "never" : "impossible",
    dies_after: chance.fraction() < 0.15 ? chance.between(0, tokens) : null,
    deaths: chance.between(1, 3),
  };
}
