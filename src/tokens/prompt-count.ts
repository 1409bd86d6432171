/**
 * How many tokens the prompt of a request is, counted by a worker as the model reads it: for a settlement of what no engine
 * reported. Nobody waits for it long, and it may fail: then what is expected is charged.
 */
import { mediaOf } from "../inference/media.ts";
import type { InferenceRequest } from "../inference/request.ts";
import { openaiChatUpstream } from "../protocol/openai-chat/codec.ts";
import { within } from "../time/deadline.ts";
import type { TokenCounter } from "./counter.ts";
import { isTokenizer } from "./tokenizers.ts";

/** A prompt to count: a request, and its body's size. */
export interface PromptAsked {
  request: InferenceRequest;
  inputBytes: number;
  model: { id: string; tokenizer?: string | undefined };
}

/** Null at once where it is not countable. */
export type CountPrompt = (asked: PromptAsked) => Promise<number> | null;

export interface PromptCountSettings {
  count_ms: number;
  /** Encoding a body for the worker takes the main thread 10 ms a megabyte. */
  body_bytes_max: number;
}

export const promptCountSettings: PromptCountSettings = { count_ms: 1_000, body_bytes_max: 1024 * 1024 };

/** Whether the model's tokenizer is known, and the body small enough to be worth it. */
export function isCountable(
  { model, inputBytes }: Omit<PromptAsked, "request">,
  { body_bytes_max }: PromptCountSettings = promptCountSettings,
): boolean {
  return tokenizerOf(model) !== null && inputBytes <= body_bytes_max;
}

function tokenizerOf({ tokenizer }: PromptAsked["model"]) {
  return tokenizer !== undefined && isTokenizer(tokenizer) ? tokenizer : null;
}

export function promptCount(
  counter: Pick<TokenCounter, "examine">,
  settings: PromptCountSettings = promptCountSettings,
): CountPrompt {
  async function counted({ request, model }: PromptAsked, tokenizer: string): Promise<number> {
    const asked = { model: model.id, stream: false, outputTokens_max: 1 };
    const chat = openaiChatUpstream.request.encode({ ...request, nativeNeeds: [] }, asked);
    const body = new TextEncoder().encode(JSON.stringify(chat));
    const tokenizers = { [model.id]: tokenizer };
    const { textTokens } = await counter.examine({ body, of: "chat", options: {}, tokenizers });
    if (textTokens === null) throw new Error("the worker that counts is gone");
    return textTokens + mediaOf(request).tokens;
  }

  return (asked) => {
    const tokenizer = tokenizerOf(asked.model);
    if (tokenizer === null || !isCountable(asked, settings)) return null;
    return within(counted(asked, tokenizer), settings.count_ms, "the count of a prompt");
  };
}
