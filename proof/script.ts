// A request says in its prompt how the engine must answer it. So the engine needs no plan of its own. By the id in the
// prompt, the judge finds in the engine's list what was asked, whatever the gateway did with the request in between.

import type { Chance } from "./chance.ts";

export type Report =
  /** The engine reports what it wrote, if the request asks for usage. */
  | "true"
  /** The engine reports nothing, as many engines do. */
  | "never"
  /** The engine reports a thousand times the tokens that the request allows. */
  | "impossible";

export interface Script {
  id: string;
  /** How many tokens the whole answer has, which is also what the request allows. */
  tokens: number;
  /** The time between two tokens. */
  gap_ms: number;
  report: Report;
  /** The engine closes the connection after this many tokens. Null: never. */
  dies_after: number | null;
  /** How many attempts end with a closed connection; the engine answers the next one. */
  deaths: number;
}

const opening = "answer-as-told ";

/** The text of the prompt. Its words are what the engine reports as tokens of the prompt. */
export function promptOf(script: Script): string {
  return `${opening}${JSON.stringify(script)}`;
}

/** The script (how the engine must answer) that a prompt holds, or null if it holds none. */
export function scriptIn(prompt: unknown): Script | null {
  if (typeof prompt !== "string" || !prompt.startsWith(opening)) return null;
  return JSON.parse(prompt.slice(opening.length)) as Script;
}

/** Common words with a space before them, each of which is one token in the vocabularies in use. */
const words = [" time", " year", " people", " way", " day", " man", " thing", " woman", " life", " child", " world"];

/** The token at one place of an answer. */
export function tokenAt(index: number): string {
  return words[index % words.length] as string;
}

/** The number of tokens in a text that was made by `tokenAt`, however it was cut into deltas. */
export function tokensIn(text: string): number {
  return text.split(" ").length - 1;
}

/**
 * Draws a script. Most requests are well behaved; the others meet an engine that dies, that never reports, or that
 * reports falsely.
 */
export function drawScript(id: string, chance: Chance, tokens_max: number): Script {
  // Half of the answers are short, so that there are many ends of answers at which something can go wrong.
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
