/** Recognises errors about an input that is longer than the engine's context, and reads the length that they name. */
import { type JsonObject, textOf } from "./json.ts";

/** Only so much of an engine's text is searched. */
const message_chars_max = 4000;

export function saysContextIsExceeded(error: JsonObject): boolean {
  if (error.code === "context_length_exceeded" || error.type === "exceed_context_size_error") return true;
  return contextWords.test(textOf(error.message).slice(0, message_chars_max));
}
const contextWords =
  /maximum context|context (length|window|size|limit)|max(imum)?_?model_?len|longer than the (model|maximum)|exceeds? the (available )?context|prompt (is )?too long|too many (input )?tokens|maximum (prompt|input) length|input tokens exceed|input token count|`inputs` tokens \+|\bn_ctx\b|context the overflows/i;

/** The engine's count of the input. Counts that include the output, and lower bounds ("at least"), are none. */
export function inputTokensOf(error: JsonObject): number | undefined {
  const { n_prompt_tokens } = error;
  const message = textOf(error.message).slice(0, message_chars_max);
  const counted = Number(n_prompt_tokens ?? countWords.map((words) => words.exec(message)?.[1]).find(Boolean));
  return Number.isInteger(counted) && counted > 0 && counted < counted_tokens_max ? counted : undefined;
}
const counted_tokens_max = 1e9;
const countWords = [
  /(?<!at least )\b(\d+) (?:tokens )?(?:in (?:the messages|(?:your|the) prompt)|input tokens|tokens from the input|of text input|`inputs` tokens)/i,
  /(?:messages resulted in|input of about|request contains|prompt contains|keep the first) (\d+) tokens/i,
  /(?:prompt is too long:|context limit:) (\d+) (?:tokens >|\+ \d+ >)/i,
  /(?:request|input) \((\d+) tokens\)/i,
  /(?:total length|prompt \(length|token count \(|n_keep \()\s?(\d+)\)/i,
];
