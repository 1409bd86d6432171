/**
 * THE SEAM OF TOKENIZERS: the interface to a feature that counts tokens as a model does (src/features/tokenizers). Without
 * the feature, the counts of requests are estimates.
 */
import { parseJsonBody } from "../body/read.ts";
import { type Media, mediaOf } from "../inference/media.ts";
import type { InferenceRequest } from "../inference/request.ts";
import { decodeRequest, type MessagesOptions } from "../protocol/anthropic-messages/decode-request.ts";
import { validateCountTokens } from "../protocol/anthropic-messages/validate.ts";
import { decodeRequest as decodeResponses } from "../protocol/openai-responses/decode-request.ts";
import {
  type Found,
  type References,
  referencesOf,
  refersTo,
  withResolved,
} from "../protocol/openai-responses/references.ts";
import { validateInputTokens } from "../protocol/openai-responses/validate.ts";

export interface TokenCounter {
  /**
   * Examines a body, whose memory may be transferred to a worker. Throws the Fault of the body's first offence, or
   * `overloaded`.
   */
  examine(asked: ExamineRequest): Promise<Examined>;
}

export interface ExamineRequest {
  /** The body, which was scanned before (src/core/body/scan.ts). */
  body: Uint8Array;
  /** The protocol in which the body asks for a count. */
  of: "messages" | "responses";
  /** The stored items that the body refers to (`Examined.refers`). */
  found?: Found;
  options: MessagesOptions;
  /** The organization that asks. Organizations take turns. */
  organization?: string;
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
}

/** Counts nothing, so that every count is an estimate. */
export const noTokenizers: TokenCounter = { examine: (asked) => examineRequest(asked, async () => null) };

/** Checks and decodes the request in a body, and counts it with `textTokens`. Throws the Fault of its first offence. */
export async function examineRequest(
  { body, of, options, found }: ExamineRequest,
  textTokens: (request: InferenceRequest) => Promise<number | null>,
): Promise<Examined> {
  const counted = async (request: InferenceRequest): Promise<Examined> => ({
    model: request.model,
    textTokens: await textTokens(request),
    media: mediaOf(request),
  });
  if (of === "messages") return counted(decodeRequest(validateCountTokens(parseJsonBody(body)), options));
  const wire = validateInputTokens(parseJsonBody(body));
  const references = referencesOf(wire);
  if (!refersTo(references)) return counted(decodeResponses(wire));
  if (found) return counted(decodeResponses(withResolved(wire, found)));
  return { model: wire.model, textTokens: null, media: { bytes: 0, tokens: 0 }, refers: { references, body } };
}
