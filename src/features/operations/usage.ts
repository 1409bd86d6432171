/** Reads what engines report about an input that has no output. Pure. */
import { isObject } from "../../core/protocol/json.ts";
import { plainCount, type Report, reportOf } from "../../core/protocol/report.ts";

/**
 * Null if there is no count. Some engines say 0 where they have not counted, and infinity counts characters unless it is told
 * otherwise, which nothing else in its answer tells. `texts`: all that the engine has read.
 */
export function inputReport(usage: unknown, texts: readonly (string | readonly number[])[]): Report | null {
  if (!isObject(usage)) return null;
  const prompt = [usage.prompt_tokens, usage.input_tokens, usage.total_tokens].map(plainCount).find(isCounted);
  if (prompt === undefined || isCharacters(prompt, texts)) return null;
  const details = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  const values = { prompt, cached: details.cached_tokens, written: undefined, output: 0, reasoning: undefined };
  return reportOf(values, { inclusive: true });
}

function isCounted(value: unknown): boolean {
  return value !== undefined && value !== null && value !== 0;
}

/** Shorter texts may have as many tokens as characters. */
const characters_min = 16;

function isCharacters(count: unknown, texts: readonly (string | readonly number[])[]): boolean {
  if (typeof count !== "number" || count < characters_min) return false;
  let characters = 0;
  for (const text of texts) {
    if (typeof text !== "string") return false;
    characters += text.length;
    for (let at = 0; at < text.length; at++) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) characters -= 1;
    if (characters > count) return false;
  }
  return characters === count;
}
