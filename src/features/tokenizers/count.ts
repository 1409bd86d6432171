/** Counts the tokens of a text, in bounded time whatever the text is. */
import type { Prompt } from "./prompt.ts";
import type { CountTokens } from "./tokenizers.ts";

/**
 * The most characters that are counted. A longer text fits into no context of these models; its rest is assumed to have
 * as many tokens per character as its beginning.
 */
export const counted_characters_max = 1024 * 1024;

export function countPrompt({ fixed, texts }: Prompt, count: CountTokens): number {
  let characters = 0;
  let tokens = 0;
  let rest = 0;
  for (const text of texts) {
    const counted = text.slice(0, Math.max(0, counted_characters_max - characters));
    for (const piece of pieces(counted)) tokens += count(piece);
    characters += counted.length;
    rest += text.length - counted.length;
  }
  const beyond = rest === 0 ? 0 : (rest * tokens) / characters;
  return fixed + tokens + Math.round(beyond);
}

/**
 * The most characters of one kind in a row that are counted together. A vocabulary takes an endless run of letters,
 * marks or blanks as one word, and the work on a word grows with the square of its length. A cut costs at most one
 * token.
 */
const run_characters_max = 256;

function* pieces(text: string): Generator<string> {
  let from = 0;
  let run = 0;
  let kind = -1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const found = kindOf(code);
    run = found === kind ? run + 1 : 1;
    kind = found;
    if (run <= run_characters_max || isTrailing(code)) continue;
    yield text.slice(from, at);
    from = at;
    run = 1;
  }
  if (from < text.length) yield from === 0 ? text : text.slice(from);
}

/**
 * The kind of a character, by which words are approximated: 0 blank, 1 digit, 2 other ASCII character, 3 letter or not
 * ASCII.
 */
function kindOf(code: number): number {
  if (code === 32 || (code >= 9 && code <= 13)) return 0;
  if (code >= 48 && code <= 57) return 1;
  const isLetter = (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code >= 128;
  return isLetter ? 3 : 2;
}

/** Whether this is the second half of a surrogate pair. */
function isTrailing(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
