/** Recognises errors about an input that is longer than the engine's context, and reads the lengths that they name. */
import type { SaidOverflow } from "../inference/fault.ts";
import type { Refusals } from "./dialect.ts";
import { compact, type JsonObject, textOf } from "./json.ts";

const message_chars_max = 4000;

/** The beginning of an error's message, which is searched. */
export function headOf(error: JsonObject): string {
  return textOf(error.message).slice(0, message_chars_max);
}

export function saysContextIsExceeded(error: JsonObject, { tooLong }: Refusals): boolean {
  if (error.code === "context_length_exceeded" || error.type === "exceed_context_size_error") return true;
  const message = headOf(error);
  return tooLong.some((words) => words.test(message));
}

/**
 * The lengths of the input and of the context that the engine's error names. Counts that include the output are
 * ignored.
 */
export function saidOverflow(error: JsonObject, said: Refusals): SaidOverflow {
  const message = headOf(error);
  const found = (words: readonly RegExp[]) => words.map((one) => one.exec(message)?.[1]).find(Boolean);
  const counted = countOf(error.n_prompt_tokens ?? found(said.inputTokens));
  const least = counted === undefined ? countOf(found(said.inputTokensAtLeast)) : undefined;
  const contextTokens = countOf(error.n_ctx ?? found(said.contextTokens));
  return compact({ inputTokens: counted ?? least, isAtLeast: least === undefined ? undefined : true, contextTokens });
}

function countOf(said: unknown): number | undefined {
  const count = typeof said === "string" || typeof said === "number" ? Number(said) : 0;
  return Number.isInteger(count) && count > 0 && count < counted_tokens_max ? count : undefined;
}
const counted_tokens_max = 1e9;
