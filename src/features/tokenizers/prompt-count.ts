/**
 * Counts the tokens of a request's prompt and of its answer in a worker, as the model reads and writes them, to settle
 * a request whose engine reported nothing. The settlement does not wait for it long, and the count may fail: then the
 * estimate is charged.
 */
import type { AnswerPart } from "../../core/inference/event.ts";
import { mediaOf } from "../../core/inference/media.ts";
import { isTokenizer } from "../../core/inference/model.ts";
import type { InferenceRequest } from "../../core/inference/request.ts";
import { openaiChatUpstream } from "../../core/protocol/openai-chat/codec.ts";
import { within } from "../../core/time/cancellation.ts";
import type { CountingWorkers } from "./counter.ts";
import type { AnswerToCount } from "./examine.ts";

interface PromptRequest {
  request: InferenceRequest;
  inputBytes: number;
  model: { id: string; tokenizer?: string | undefined };
  principal: { organization: { id: string } };
}

/** Counts a prompt. Returns null, and no promise, if the prompt cannot be counted. */
type CountPrompt = (asked: PromptRequest) => Promise<number> | null;

interface AnswerCounted {
  tokens: number;
  reasoningTokens: number;
}

export type CountAnswer = (
  asked: Pick<PromptRequest, "model" | "principal">,
  parts: readonly AnswerPart[],
) => Promise<AnswerCounted>;

interface PromptCountSettings {
  count_ms: number;
  /** The largest body that is counted. Encoding a body for the worker takes the main thread 10 ms a megabyte. */
  body_bytes_max: number;
}

const promptCountSettings: PromptCountSettings = { count_ms: 1_000, body_bytes_max: 1024 * 1024 };

/** Whether the prompt can be counted: the model's tokenizer is known, and the body is small enough. */
export function isCountable(
  { model, inputBytes }: Pick<PromptRequest, "model" | "inputBytes">,
  { body_bytes_max }: PromptCountSettings = promptCountSettings,
): boolean {
  return tokenizerOf(model) !== null && inputBytes <= body_bytes_max;
}

export function hasTokenizer(model: PromptRequest["model"]): boolean {
  return tokenizerOf(model) !== null;
}

function tokenizerOf({ tokenizer }: PromptRequest["model"]) {
  return tokenizer !== undefined && isTokenizer(tokenizer) ? tokenizer : null;
}

export function promptCount(
  counter: Pick<CountingWorkers, "examine">,
  settings: PromptCountSettings = promptCountSettings,
): CountPrompt {
  async function counted({ request, model, principal }: PromptRequest, tokenizer: string): Promise<number> {
    const asked = { model: model.id, stream: false, outputTokens_max: 1 };
    const chat = openaiChatUpstream.request.encode({ ...request, nativeNeeds: [] }, asked);
    const body = new TextEncoder().encode(JSON.stringify(chat));
    const tokenizers = { [model.id]: tokenizer };
    const organization = principal.organization.id;
    const { textTokens } = await counter.examine({ body, of: "chat", organization, options: {}, tokenizers });
    if (textTokens === null) throw new Error("the worker that counts is gone");
    return textTokens + mediaOf(request).tokens;
  }

  return (asked) => {
    const tokenizer = tokenizerOf(asked.model);
    if (tokenizer === null || !isCountable(asked, settings)) return null;
    return within(counted(asked, tokenizer), settings.count_ms, "the count of a prompt");
  };
}

/** Makes the function that counts answers. That function rejects if the model's tokenizer is not known. */
export function answerCount(counter: Pick<CountingWorkers, "examine">): CountAnswer {
  async function counted(...[{ model, principal }, parts]: Parameters<CountAnswer>): Promise<AnswerCounted> {
    const answer: AnswerToCount = { model: model.id, parts };
    const body = new TextEncoder().encode(JSON.stringify(answer));
    const tokenizers = { [model.id]: tokenizerOf(model) ?? "" };
    const { textTokens, reasoningTokens = 0 } = await counter.examine({
      body,
      of: "answer",
      organization: principal.organization.id,
      options: {},
      tokenizers,
    });
    if (textTokens === null) throw new Error("the tokenizer of the model is not known");
    return { tokens: textTokens, reasoningTokens };
  }

  return (asked, parts) => within(counted(asked, parts), promptCountSettings.count_ms, "the count of an answer");
}
