/**
 * Reads the words by which engines say why an answer ended, by the table of their dialect. Case does not count, and
 * `content-filter` and `contentFilter` are `content_filter`: docs/engines.md, How answers end.
 */
import type { StopReason } from "../inference/event.ts";
import type { Dialect, FinishReason as Meaning } from "./dialect.ts";
import { entryOf } from "./json.ts";

type Words = Dialect["finishReasons"];

/**
 * The meaning of an engine's word; undefined for an unknown word. A value that is no text is no reason: engines send
 * null and false until the answer ends.
 */
export function meaningOf(word: unknown, words: Words): Meaning | undefined {
  if (typeof word !== "string") return "unfinished";
  // Some engines send a reason with each token.
  const written = entryOf(words, word);
  if (written !== undefined) return written;
  const plain = plainOf(word);
  // A word for a failure that is not in the table must not count as success.
  return (
    entryOf(words, plain) ??
    (/(^|_)(error|failed|failure|aborted|timeout|exception)(_|$)/.test(plain) ? "failed" : undefined)
  );
}

/**
 * The word in lower case with underscores: `max_tokens` for `FinishReason.MAX_TOKENS`, `max-tokens` and `maxTokens`.
 */
function plainOf(word: string): string {
  return word
    .slice(0, word_characters_max)
    .trim()
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replace(/[\s-]+/g, "_")
    .replace(/^(finish_?|stop_)?reason[._]/, "");
}

/** The word as the log shows it: short, printable, and not a part of the answer. */
export function shownReason(word: string): string {
  return word.slice(0, word_characters_max).replace(/[^ -~]/g, "?");
}
const word_characters_max = 64;

/** The reason for an answer's end, as far as the engine has given it. Of two reasons, the first known one counts. */
export class FinishReason {
  readonly #words: Words;
  #known: StopReason | null = null;
  /** The first unknown word. */
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

  /** The known reason; null if the engine has given none that ends an answer. */
  get known(): StopReason | null {
    return this.#known;
  }

  /** The unknown word that was taken for a stop, because no known one came. */
  get unknown(): string | undefined {
    return this.#known === null ? (this.#unknown ?? undefined) : undefined;
  }
}
