/** Continues an answer whose beginning the request gives, as engines do with `continue_final_message`. */
import { type Choice, capped, type Part, partTokens, type SimulatedAnswer, usageOf } from "./parts.ts";
import { SimulatorRefusal } from "./refusal.ts";
import type { ChatRequest } from "./request.ts";
import { inputTokens } from "./text.ts";

/**
 * Splits a request that gives the beginning of its answer into a request for the complete answer, and the beginning.
 * Throws a SimulatorRefusal if the request gives no beginning.
 */
export function beginningIn(chatRequest: ChatRequest): { request: ChatRequest; beginning: string } {
  const last = chatRequest.messages.at(-1);
  if (last?.role !== "assistant")
    throw new SimulatorRefusal(
      400,
      "Simulator: continue_final_message needs a last message of the assistant.",
      "invalid_value",
    );
  const messages = chatRequest.messages.slice(0, -1);
  return { request: { ...chatRequest, messages, tokens_max: Number.POSITIVE_INFINITY }, beginning: last.text };
}

/**
 * The rest of an answer after `beginning`, at most `tokens_max` tokens. If the answer's text does not begin with
 * `beginning`, the rest is the whole answer.
 */
export function restOf({ choices, usage }: SimulatedAnswer, beginning: string, tokens_max: number): SimulatedAnswer {
  const rest = choices.map((choice): Choice => {
    const all = choice.parts.map((part) => partAfter(part, beginning));
    const parts = capped(all, tokens_max);
    return { parts, finish: tokensIn(parts) < tokensIn(all) ? "length" : choice.finish };
  });
  const { cached_tokens } = usage.prompt_tokens_details;
  return { choices: rest, usage: usageOf(rest, usage.prompt_tokens + inputTokens(beginning), cached_tokens) };
}

function tokensIn(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + partTokens(part), 0);
}

function partAfter(part: Part, beginning: string): Part {
  if (part.kind !== "text" || !part.tokens.join("").startsWith(beginning)) return part;
  const tokens: string[] = [];
  let passed = 0;
  for (const token of part.tokens) {
    const piece = token.slice(Math.max(0, beginning.length - passed));
    passed += token.length;
    if (piece !== "") tokens.push(piece);
  }
  return { ...part, tokens };
}
