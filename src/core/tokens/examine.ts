/** Examines and counts the body of a request. Runs in the worker. */

import { parseJsonBody } from "../body/read.ts";
import type { AnswerPart } from "../inference/event.ts";
import { type Media, mediaOf } from "../inference/media.ts";
import type { InferenceRequest } from "../inference/request.ts";
import { decodeRequest, type MessagesOptions } from "../protocol/anthropic-messages/decode-request.ts";
import { validateCountTokens } from "../protocol/anthropic-messages/validate.ts";
import type { Dialect } from "../protocol/dialect.ts";
import { dialects } from "../protocol/dialects.ts";
import { openaiChatUpstream } from "../protocol/openai-chat/codec.ts";
import { decodeRequest as decodeResponses } from "../protocol/openai-responses/decode-request.ts";
import {
  type Found,
  type References,
  referencesOf,
  refersTo,
  withResolved,
} from "../protocol/openai-responses/references.ts";
import { validateInputTokens } from "../protocol/openai-responses/validate.ts";
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

export interface ExamineRequest {
  /** The body, which was scanned before (src/core/body/scan.ts). */
  body: Uint8Array;
  /**
   * The kind of body. `chat` and `answer`: a request and an answer that this service wrote. The others: requests of
   * clients to count tokens.
   */
  of: "messages" | "responses" | "chat" | "answer";
  /** The stored items that the body refers to (`Examined.refers`). */
  found?: Found;
  options: MessagesOptions;
  /** The key is the id of a model with a known tokenizer, the value is the tokenizer's name. */
  tokenizers: Readonly<Record<string, string>>;
}

export interface Examined {
  model: string;
  /** The number of tokens of text, tools and template; null if the model's tokenizer is not known. */
  textTokens: number | null;
  media: Media;
  /** Set if nothing was counted, because the body refers to stored items: call `examine` again with those items. */
  refers?: { references: References; body: Uint8Array };
  /** The number of an answer's tokens that are reasoning. */
  reasoningTokens?: number;
}

/** The form in which an answer is sent to the worker. */
export interface AnswerToCount {
  model: string;
  parts: readonly AnswerPart[];
}

const noMedia: Media = { bytes: 0, tokens: 0 };

/** Examines a body. Throws the Fault of its first offence. */
export async function examine(asked: ExamineRequest, vocabularies: Vocabularies): Promise<Examined> {
  const { body, options, found } = asked;
  switch (asked.of) {
    case "chat":
      return examineChat(asked, vocabularies);
    case "answer":
      return examineAnswer(asked, vocabularies);
    case "messages":
      return examineRequest(decodeRequest(validateCountTokens(parseJsonBody(body)), options), asked, vocabularies);
    case "responses": {
      const wire = validateInputTokens(parseJsonBody(body));
      const references = referencesOf(wire);
      if (!refersTo(references)) return examineRequest(decodeResponses(wire), asked, vocabularies);
      if (!found) return { model: wire.model, textTokens: null, media: noMedia, refers: { references, body } };
      return examineRequest(decodeResponses(withResolved(wire, found)), asked, vocabularies);
    }
  }
}

/** The dialect of an engine that accepts everything, because it is not known which engine would get the request. */
const boundless: Dialect = {
  ...dialects.generic,
  bounds: {
    tools_max: Number.POSITIVE_INFINITY,
    name_characters_max: Number.POSITIVE_INFINITY,
    nameForm: /(?:)/,
    stops_max: Number.POSITIVE_INFINITY,
  },
};

async function examineRequest(
  request: InferenceRequest,
  { tokenizers }: ExamineRequest,
  vocabularies: Vocabularies,
): Promise<Examined> {
  const media = mediaOf(request);
  const { model } = request;
  const name = Object.hasOwn(tokenizers, model) ? tokenizers[model] : undefined;
  if (name === undefined || !isTokenizer(name)) return { model, textTokens: null, media };
  // The request as a body of chat completions, which the templates read. A request that engines of this protocol would
  // refuse is written as far as it can be.
  const wire = openaiChatUpstream.request.encode(
    { ...request, nativeNeeds: [] },
    { model, stream: false, outputTokens_max: 1, dialect: boundless },
  );
  const textTokens = await countChat(JSON.parse(JSON.stringify(wire)), name, vocabularies);
  return { model, textTokens, media };
}

async function examineChat({ body, tokenizers }: ExamineRequest, vocabularies: Vocabularies): Promise<Examined> {
  const wire = parseJsonBody(body) as Record<string, unknown>;
  const model = String(wire.model);
  const name = tokenizers[model];
  if (name === undefined || !isTokenizer(name)) return { model, textTokens: null, media: noMedia };
  return { model, textTokens: await countChat(wire, name, vocabularies), media: noMedia };
}

async function examineAnswer({ body, tokenizers }: ExamineRequest, vocabularies: Vocabularies): Promise<Examined> {
  const { model, parts } = parseJsonBody(body) as unknown as AnswerToCount;
  const name = tokenizers[model];
  if (name === undefined || !isTokenizer(name)) return { model, textTokens: null, media: noMedia };
  const count = await vocabularies[name]();
  const tokensOf = (some: readonly AnswerPart[]) => countPrompt(answers[name](some), count);
  const reasoningTokens = tokensOf(parts.filter(({ kind }) => kind === "reasoning"));
  const otherTokens = tokensOf(parts.filter(({ kind }) => kind !== "reasoning"));
  const textTokens = Math.max(0, reasoningTokens + otherTokens - (parts.length > 0 ? promptedTokens[name] : 0));
  return { model, textTokens, media: noMedia, reasoningTokens: Math.min(reasoningTokens, textTokens) };
}

async function countChat(
  wire: Record<string, unknown>,
  name: TokenizerName,
  vocabularies: Vocabularies,
): Promise<number> {
  return countPrompt(templates[name](chatOf(wire)), await vocabularies[name]());
}
