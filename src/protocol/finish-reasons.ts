/**
 * What the words mean by which engines say why an answer ended: docs/engines.md, Finish reasons. Words are compared without
 * their case, and `content-filter` and `contentFilter` are `content_filter`.
 */
import type { StopReason } from "../inference/event.ts";
import { entryOf } from "./json.ts";

/** `failed`: the generation broke off, and what came is no answer. `pending`: the answer has not ended. */
export type FinishMeaning = StopReason | "failed" | "pending";

export type FinishReasons = Readonly<Partial<Record<string, FinishMeaning>>>;

function meaning<Meaning extends FinishMeaning>(of: Meaning, words: string): Record<string, Meaning> {
  return Object.fromEntries(words.trim().split(/\s+/).map((word) => [word, of]));
}

export const finishReasons: FinishReasons = {
  "": "pending",
  ...meaning("pending", "null none nil undefined unfinished unspecified not_finished in_progress running"),
  ...meaning("stop", "stop stopped eos eos_token end_turn end_of_turn stop_sequence stop_token stop_string pause_turn"),
  ...meaning("stop", "end done complete completed finished finish success"),
  ...meaning("length", "length max_length max_tokens max_new_tokens max_output_tokens max_completion_tokens"),
  ...meaning("length", "model_length model_context_window_exceeded context_window_exceeded context_length"),
  ...meaning("length", "context_length_exceeded token_limit token_limit_reached max_tokens_reached limit error_limit"),
  ...meaning("tool_calls", "tool_calls tool_call tool_use tool function_call function_calls"),
  ...meaning("content_filter", "content_filter content_filtered filter filtered sensitive safety image_safety refusal"),
  ...meaning("content_filter", "refused guardrail guardrails guardrail_intervened recitation blocked blocklist spii"),
  ...meaning("content_filter", "prohibited_content image_prohibited_content content_policy content_policy_violation"),
  ...meaning("content_filter", "content_blocked moderation policy_violation"),
  ...meaning("failed", "error errored failed failure abort aborted cancel cancelled canceled user_cancel timeout"),
  ...meaning("failed", "timed_out unknown interrupted exception crash preempted disconnected network_error server_error"),
  ...meaning("failed", "internal_error internal_server_error error_toxic rate_limit overloaded out_of_memory oom"),
  ...meaning("failed", "malformed_function_call unexpected_tool_call malformed_response no_image"),
  ...meaning("failed", "insufficient_system_resource model_error engine_error api_error"),
};

/**
 * The meaning of an engine's word; undefined for a word that nobody knows. A value that is no text is no reason: engines send
 * null and false until the answer ends.
 */
export function meaningOf(word: unknown, words: FinishReasons): FinishMeaning | undefined {
  if (typeof word !== "string") return "pending";
  const plain = plainOf(word);
  const known = entryOf(words, plain);
  // A failure under any other name is no success either.
  return known ?? (/(^|_)(error|failed|failure|aborted|timeout|exception)(_|$)/.test(plain) ? "failed" : undefined);
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
  readonly #words: FinishReasons;
  #known: StopReason | null = null;
  /** The first word that nobody knows. */
  #unknown: string | null = null;
  isFailed = false;

  constructor(words: FinishReasons) {
    this.#words = words;
  }

  take(word: unknown): void {
    const meaning = meaningOf(word, this.#words);
    if (meaning === "failed") this.isFailed = true;
    else if (meaning === undefined) this.#unknown ??= shownReason(String(word));
    else if (meaning !== "pending") this.#known ??= meaning;
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
