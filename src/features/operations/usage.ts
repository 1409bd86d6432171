/** Reads an engine's report of usage for an operation without output. Pure. */
import { isObject } from "../../core/protocol/json.ts";
import { plainCount, type Report, reportOf } from "../../core/protocol/report.ts";

/**
 * The report; null if it has no count. A 0 is no count, because some engines write it instead of counting. The engine
 * Infinity counts characters by default without saying so, so a count that equals the characters of the texts is
 * ignored. `texts`: all that the engine has read.
 */
export function inputReport(usage: unknown, texts: readonly (string | readonly number[])[]): Report | null {
  if (!isObject(usage)) return null;
  const counts = [usage.prompt_tokens, usage.input_tokens, usage.total_tokens].map(plainCount);
  const prompt = counts.find((count) => count !== undefined && count !== null && count !== 0);
  if (prompt === undefined || isCharacters(prompt, texts)) return null;
  const details = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  const values = { prompt, cached: details.cached_tokens, written: undefined, output: 0, reasoning: undefined };
  return reportOf(values, { inclusive: true });
}

/** Texts shorter than this may really have as many tokens as characters. */
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
