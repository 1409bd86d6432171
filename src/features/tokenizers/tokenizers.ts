/**
 * The tokenizers by their names (`tokenizer` in sluice.yaml): a vocabulary (vocabularies.ts), and the chat template
 * that belongs to it.
 */
import type { TokenizerName } from "../../core/inference/model.ts";
import { harmony, harmonyAnswer } from "./harmony.ts";
import { llama3, llama3Answer } from "./llama3.ts";
import type { AnswerTemplate, Template } from "./prompt.ts";

export const templates: Record<TokenizerName, Template> = { o200k_harmony: harmony, llama3 };
export const answers: Record<TokenizerName, AnswerTemplate> = { o200k_harmony: harmonyAnswer, llama3: llama3Answer };

/**
 * The number of special tokens that are counted with an answer although its prompt had them already. Negative for
 * llama3, whose end token is not counted with the answer.
 */
export const promptedTokens: Record<TokenizerName, number> = { o200k_harmony: 2, llama3: -1 };

/** The number of tokens of a text; special tokens in it count as text. */
export type CountTokens = (text: string) => number;
export type Vocabularies = Record<TokenizerName, () => Promise<CountTokens>>;
