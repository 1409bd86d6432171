/** The body of a request for a count → what is known of it. Runs in the worker. */
import type { AnswerPart } from "../inference/answer-part.ts";
import { type Media, mediaOf } from "../inference/media.ts";
import { decodeRequest, type MessagesOptions } from "../protocol/anthropic-messages/decode-request.ts";
import { validateCountTokens } from "../protocol/anthropic-messages/validate.ts";
import { parseJsonBody } from "../protocol/json-body.ts";
import { openaiChatUpstream } from "../protocol/openai-chat/codec.ts";
import { countPrompt } from "./count.ts";
import { chatOf } from "./prompt.ts";
import {
  answers,
  isTokenizer,
  promptedTokens,
  type TokenizerName,
  templates,
  type Vocabularies,
} from "./tokenizers.ts";

export interface Asked {
  /** Looked over already (src/protocol/body-scan.ts). */
  body: Uint8Array;
  /** What the body is, where it is no request for a count: a chat request or an answer, of our own making. */
  form?: "chat" | "answer";
  options: MessagesOptions;
  /** Name of a known tokenizer, by model id. */
  tokenizers: Readonly<Record<string, string>>;
}

export interface Examined {
  model: string;
  /** Of text, tools and template; null where the model's tokenizer is not known. */
  textTokens: number | null;
  media: Media;
  /** Of an answer: how many of them are of reasoning. */
  reasoningTokens?: number;
}

/** What the worker is sent of an answer. */
export interface Answer {
  model: string;
  parts: readonly AnswerPart[];
}

/** Throws the Fault of the body's first offence. */
export async function examine(asked: Asked, vocabularies: Vocabularies): Promise<Examined> {
  const { body, options, tokenizers } = asked;
  if (asked.form === "chat") return examineChat(asked, vocabularies);
  if (asked.form === "answer") return examineAnswer(asked, vocabularies);
  const request = decodeRequest(validateCountTokens(parseJsonBody(body)), options);
  const media = mediaOf(request);
  const { model } = request;
  const name = Object.hasOwn(tokenizers, model) ? tokenizers[model] : undefined;
  if (name === undefined || !isTokenizer(name)) return { model, textTokens: null, media };
  // What this engine would be refused is counted as far as it is understood.
  const wire = openaiChatUpstream.request.encode(
    { ...request, nativeNeeds: [] },
    { model, stream: false, outputTokens_max: 1 },
  );
  const textTokens = await countChat(JSON.parse(JSON.stringify(wire)), name, vocabularies);
  return { model, textTokens, media };
}

async function examineChat({ body, tokenizers }: Asked, vocabularies: Vocabularies): Promise<Examined> {
  const wire = parseJsonBody(body) as Record<string, unknown>;
  const model = String(wire.model);
  const name = tokenizers[model];
  const media = { bytes: 0, tokens: 0 };
  if (name === undefined || !isTokenizer(name)) return { model, textTokens: null, media };
  return { model, textTokens: await countChat(wire, name, vocabularies), media };
}

async function examineAnswer({ body, tokenizers }: Asked, vocabularies: Vocabularies): Promise<Examined> {
  const { model, parts } = parseJsonBody(body) as unknown as Answer;
  const name = tokenizers[model];
  const media = { bytes: 0, tokens: 0 };
  if (name === undefined || !isTokenizer(name)) return { model, textTokens: null, media };
  const count = await vocabularies[name]();
  const tokensOf = (some: readonly AnswerPart[]) => countPrompt(answers[name](some), count);
  const reasoningTokens = tokensOf(parts.filter(({ kind }) => kind === "reasoning"));
  const otherTokens = tokensOf(parts.filter(({ kind }) => kind !== "reasoning"));
  const textTokens = Math.max(0, reasoningTokens + otherTokens - (parts.length > 0 ? promptedTokens[name] : 0));
  return { model, textTokens, media, reasoningTokens: Math.min(reasoningTokens, textTokens) };
}

async function countChat(
  wire: Record<string, unknown>,
  name: TokenizerName,
  vocabularies: Vocabularies,
): Promise<number> {
  return countPrompt(templates[name](chatOf(wire)), await vocabularies[name]());
}
