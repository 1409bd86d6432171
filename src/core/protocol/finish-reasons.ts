/**
 * Reads the words by which engines say why an answer ended. They are rows of the dialects; their case does not count, and
 * `content-filter` and `contentFilter` are `content_filter`: docs/engines.md, How answers end.
 */
import type { StopReason } from "../inference/event.ts";
import type { Dialect, FinishReason as Meaning } from "./dialect.ts";
import { entryOf } from "./json.ts";

type Words = Dialect["finishReasons"];

/**
 * The meaning of an engine's word; undefined for a word that nobody knows. A value that is no text is no reason: engines send
 * null and false until the answer ends.
 */
export function meaningOf(word: unknown, words: Words): Meaning | undefined {
  if (typeof word !== "string") return "unfinished";
  // Some engines write one with each token.
  const written = entryOf(words, word);
  if (written !== undefined) return written;
  const plain = plainOf(word);
  // A failure under any other name is no success either.
  return (
    entryOf(words, plain) ??
    (/(^|_)(error|failed|failure|aborted|timeout|exception)(_|$)/.test(plain) ? "failed" : undefined)
  );
}

/** `FinishReason.MAX_TOKENS`, `max-tokens` and `maxTokens` are `max_tokens`. */
function plainOf(word: string): string {
  return word
    .slice(0, word_characters_max)
    .trim()
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replace(/[\s-]+/g, "_")
    .replace(/^(finish_?|stop_)?reason[._]/, "");
}

/** The word for the log: short, printable, and no part of the answer. */
export function shownReason(word: string): string {
  return word.slice(0, word_characters_max).replace(/[^ -~]/g, "?");
}
const word_characters_max = 64;

/** Why an answer ends, as far as the engine has said it. Of two reasons, the first that is known stands. */
export class FinishReason {
  readonly #words: Words;
  #known: StopReason | null = null;
  /** The first word that nobody knows. */
  #unknown: string | null = null;
  isFailed = false;

  constructor(words: Words) {
    this.#words = words;
  }

  take(word: unknown): void {
    const meaning = meaningOf(word, this.#words);
    if (meaning === "failed") this.isFailed = true;
    else if (meaning === undefined) this.#unknown ??= shownReason(String(word));
    else if (meaning !== "unfinished") this.#known ??= meaning;
  }

  /** Null if the engine has given no reason that ends an answer by itself. */
  get known(): StopReason | null {
    return this.#known;
  }

  /** The word that was taken for a stop, because nothing better was said. */
  get unknown(): string | undefined {
    return this.#known === null ? (this.#unknown ?? undefined) : undefined;
  }
}
