/** Reads what engines report about an input that has no output. Pure. */
import { isObject, type JsonObject } from "../../core/protocol/json.ts";
import { plainCount, type Report, reportOf } from "../../core/protocol/report.ts";

/** Null if there is no count. Some engines say 0 where they have not counted. */
export function inputReport(usage: unknown): Report | null {
  if (!isObject(usage)) return null;
  const prompt = [usage.prompt_tokens, usage.input_tokens, usage.total_tokens].map(plainCount).find(isCounted);
  if (prompt === undefined) return null;
  const details = isObject(usage.prompt_tokens_details) ? (usage.prompt_tokens_details as JsonObject) : {};
  const values = { prompt, cached: details.cached_tokens, written: undefined, output: 0, reasoning: undefined };
  return reportOf(values, { inclusive: true });
}

function isCounted(value: unknown): boolean {
  return value !== undefined && value !== null && value !== 0;
}
