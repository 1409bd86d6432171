// Simulates the usage that an engine reports for a prompt: its number of tokens, and how many of them were cached by
// the request before.

import { vocabularies } from "../../src/features/tokenizers/vocabularies.ts";
import type { ChatAsked, EngineUsage, Turn } from "./scripted-engine.ts";

/** The size in tokens of the blocks in which vLLM caches prompts. */
const block_tokens = 16;

/**
 * Returns a function that computes an engine's usage for a request and its turn. If `cached`, the engine caches
 * prefixes of prompts and reports the cached tokens. Otherwise its usage does not mention a cache.
 */
export async function usageReport(cached: boolean): Promise<(asked: ChatAsked, turn: Turn) => EngineUsage> {
  const countTokens = await vocabularies().o200k_harmony();
  let before = "";
  return (asked, { text = "", calls = [] }) => {
    const prompt = promptOf(asked);
    const shared = sharedLength(before, prompt);
    before = prompt;
    const kept = countTokens(prompt.slice(0, shared));
    const answer = text + calls.map((call) => call.name + JSON.stringify(call.arguments)).join("");
    return {
      prompt_tokens: kept + countTokens(prompt.slice(shared)),
      completion_tokens: countTokens(answer),
      ...(cached ? { prompt_tokens_details: { cached_tokens: kept - (kept % block_tokens) } } : {}),
    };
  };
}

/** Estimates the usage from the lengths of the request and the response, at about four characters per token. */
export function usageByLength(asked: ChatAsked, turn: Turn): EngineUsage {
  const tokens = (value: unknown) => Math.ceil(JSON.stringify(value).length / 4);
  return { prompt_tokens: tokens(asked), completion_tokens: tokens(turn) };
}

/** The prompt in the order of a chat template: the tools, and then the messages. */
function promptOf({ tools = [], messages }: ChatAsked): string {
  const said = messages.map(({ role, content, tool_calls = [] }) => {
    const text = typeof content === "string" ? content : JSON.stringify(content ?? "");
    const calls = tool_calls.map(
      ({ function: { name, arguments: given } }) => `<tool_call>${name}${given}</tool_call>`,
    );
    return `<|im_start|>${role}\n${text}${calls.join("")}<|im_end|>\n`;
  });
  return [...tools.map((tool) => JSON.stringify(tool)), ...said].join("\n");
}

function sharedLength(one: string, other: string): number {
  let at = 0;
  while (at < one.length && at < other.length && one[at] === other[at]) at += 1;
  return at;
}
