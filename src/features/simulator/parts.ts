/** The parts of the simulator's answers: choices, their parts, and tokens. */

export interface SimulatedAnswer {
  choices: Choice[];
  usage: Usage;
}

export interface Choice {
  parts: Part[];
  finish: string;
}

/**
 * A part of an answer. `tokens`: the texts of the tokens in which the part is generated. The head of a tool call (its
 * id and name) counts as one more token.
 */
export type Part =
  | { kind: "reasoning" | "text" | "refusal"; tokens: string[] }
  | { kind: "call"; id: string; name: string; tokens: string[] };

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details: { reasoning_tokens: number };
}

export function partTokens(part: Part): number {
  return part.tokens.length + (part.kind === "call" ? 1 : 0);
}

export function usageOf(choices: Choice[], prompt_tokens: number, cached: number): Usage {
  let completion_tokens = 0;
  let reasoning_tokens = 0;
  for (const part of choices.flatMap((choice) => choice.parts)) {
    completion_tokens += partTokens(part);
    if (part.kind === "reasoning") reasoning_tokens += partTokens(part);
  }
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens: Math.min(cached, prompt_tokens) },
    completion_tokens_details: { reasoning_tokens },
  };
}

/** The parts, cut off after `tokens_max` tokens. */
export function capped(parts: Part[], tokens_max: number): Part[] {
  const kept: Part[] = [];
  let left = tokens_max;
  for (const part of parts) {
    if (left <= 0) break;
    const count = partTokens(part);
    const room = part.kind === "call" ? left - 1 : left;
    kept.push(count <= left ? part : { ...part, tokens: part.tokens.slice(0, room) });
    left -= count;
  }
  return kept;
}
