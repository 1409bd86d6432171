/** Examines and counts the body of a request or an answer. Runs in the worker. */

import { parseJsonBody } from "../../core/body/read.ts";
import type { AnswerPart } from "../../core/inference/event.ts";
import type { Media } from "../../core/inference/media.ts";
import { isTokenizer, type TokenizerName } from "../../core/inference/model.ts";
import type { InferenceRequest } from "../../core/inference/request.ts";
import { type Examined, type ExamineRequest, examineRequest } from "../../core/operations/token-counter.ts";
import type { Dialect } from "../../core/protocol/dialect.ts";
import { dialects } from "../../core/protocol/dialects.ts";
import { openaiChatUpstream } from "../../core/protocol/openai-chat/codec.ts";
import { countPrompt } from "./count.ts";
import { chatOf } from "./prompt.ts";
import { answers, promptedTokens, templates, type Vocabularies } from "./tokenizers.ts";

/**
 * A question to a worker. `chat` and `answer`: the body is a request or an answer that this service wrote. The others:
 * requests of clients to count tokens.
 */
export type WorkerRequest = ExamineRequest | OwnRequest<"chat"> | OwnRequest<"answer">;
interface OwnRequest<Of> extends Omit<ExamineRequest, "of" | "found"> {
  of: Of;
}

export interface WorkerExamined extends Examined {
  reasoningTokens?: number;
}

export interface AnswerToCount {
  model: string;
  parts: readonly AnswerPart[];
}

const noMedia: Media = { bytes: 0, tokens: 0 };

/** Examines a body. Throws the Fault of its first offence. */
export async function examine(asked: WorkerRequest, vocabularies: Vocabularies): Promise<WorkerExamined> {
  if (asked.of === "chat") return examineChat(asked, vocabularies);
  if (asked.of === "answer") return examineAnswer(asked, vocabularies);
  return examineRequest(asked, (request) => countRequest(request, asked, vocabularies));
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

async function countRequest(
  request: InferenceRequest,
  { tokenizers }: ExamineRequest,
  vocabularies: Vocabularies,
): Promise<number | null> {
  const name = tokenizerOf(request.model, tokenizers);
  if (name === null) return null;
  // The request as a body of chat completions, which the templates read. A request that engines of this protocol would
  // refuse is written as far as it can be.
  const wire = openaiChatUpstream.request.encode(
    { ...request, nativeNeeds: [] },
    { model: request.model, stream: false, outputTokens_max: 1, dialect: boundless },
  );
  return countChat(JSON.parse(JSON.stringify(wire)), name, vocabularies);
}

async function examineChat(
  { body, tokenizers }: OwnRequest<"chat">,
  vocabularies: Vocabularies,
): Promise<WorkerExamined> {
  const wire = parseJsonBody(body) as Record<string, unknown>;
  const model = String(wire.model);
  const name = tokenizerOf(model, tokenizers);
  return { model, textTokens: name && (await countChat(wire, name, vocabularies)), media: noMedia };
}

async function examineAnswer(
  { body, tokenizers }: OwnRequest<"answer">,
  vocabularies: Vocabularies,
): Promise<WorkerExamined> {
  const { model, parts } = parseJsonBody(body) as unknown as AnswerToCount;
  const name = tokenizerOf(model, tokenizers);
  if (name === null) return { model, textTokens: null, media: noMedia };
  const count = await vocabularies[name]();
  const tokensOf = (some: readonly AnswerPart[]) => countPrompt(answers[name](some), count);
  const reasoningTokens = tokensOf(parts.filter(({ kind }) => kind === "reasoning"));
  const otherTokens = tokensOf(parts.filter(({ kind }) => kind !== "reasoning"));
  const textTokens = Math.max(0, reasoningTokens + otherTokens - (parts.length > 0 ? promptedTokens[name] : 0));
  return { model, textTokens, media: noMedia, reasoningTokens: Math.min(reasoningTokens, textTokens) };
}

function tokenizerOf(model: string, tokenizers: ExamineRequest["tokenizers"]): TokenizerName | null {
  const name = Object.hasOwn(tokenizers, model) ? tokenizers[model]! : "";
  return isTokenizer(name) ? name : null;
}

async function countChat(
  wire: Record<string, unknown>,
  name: TokenizerName,
  vocabularies: Vocabularies,
): Promise<number> {
  return countPrompt(templates[name](chatOf(wire)), await vocabularies[name]());
}
