/**
 * The tokenizers that are known by name (`tokenizer` in sluice.yaml): a vocabulary (vocabularies.ts), and the chat
 * template that goes with it.
 */
import { harmony } from "./harmony.ts";
import { llama3 } from "./llama3.ts";
import type { Template } from "./prompt.ts";

export const tokenizerNames = ["o200k_harmony", "llama3"] as const;
export type TokenizerName = (typeof tokenizerNames)[number];

export function isTokenizer(name: string): name is TokenizerName {
  return tokenizerNames.includes(name as TokenizerName);
}

export const templates: Record<TokenizerName, Template> = { o200k_harmony: harmony, llama3 };

/** How many tokens a text is; special tokens in it are text. */
export type CountTokens = (text: string) => number;
export type Vocabularies = Record<TokenizerName, () => Promise<CountTokens>>;
