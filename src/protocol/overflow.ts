/** Recognises errors about an input that is longer than the engine's context, and reads the length that they name. */
import type { Refusals } from "./dialect.ts";
import { type JsonObject, textOf } from "./json.ts";

/** Only so much of an engine's text is searched. */
const message_chars_max = 4000;

/** The beginning of an error's message. */
export function headOf(error: JsonObject): string {
  return textOf(error.message).slice(0, message_chars_max);
}

export function saysContextIsExceeded(error: JsonObject, { tooLong }: Refusals): boolean {
  if (error.code === "context_length_exceeded" || error.type === "exceed_context_size_error") return true;
  const message = headOf(error);
  return tooLong.some((words) => words.test(message));
}

/** The engine's count of the input. Counts that include the output, and lower bounds ("at least"), are none. */
export function inputTokensOf(error: JsonObject, { inputTokens }: Refusals): number | undefined {
  const { n_prompt_tokens } = error;
  const message = headOf(error);
  const counted = Number(n_prompt_tokens ?? inputTokens.map((words) => words.exec(message)?.[1]).find(Boolean));
  return Number.isInteger(counted) && counted > 0 && counted < counted_tokens_max ? counted : undefined;
}
const counted_tokens_max = 1e9;
