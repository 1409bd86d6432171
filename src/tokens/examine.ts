/** The body of a request for a count → what is known of it. Runs in the worker. */
import { type Media, mediaOf } from "../inference/media.ts";
import { decodeRequest, type MessagesOptions } from "../protocol/anthropic-messages/decode-request.ts";
import { validateCountTokens } from "../protocol/anthropic-messages/validate.ts";
import { parseJsonBody } from "../protocol/json-body.ts";
import { openaiChatUpstream } from "../protocol/openai-chat/codec.ts";
import { countPrompt } from "./count.ts";
import { chatOf } from "./prompt.ts";
import { isTokenizer, templates, type Vocabularies } from "./tokenizers.ts";

export interface Asked {
  /** Looked over already (src/protocol/body-scan.ts). */
  body: Uint8Array;
  options: MessagesOptions;
  /** Name of a known tokenizer, by model id. */
  tokenizers: Readonly<Record<string, string>>;
}

export interface Examined {
  model: string;
  /** Of text, tools and template; null where the model's tokenizer is not known. */
  textTokens: number | null;
  media: Media;
}

/** Throws the Fault of the body's first offence. */
export async function examine(asked: Asked, vocabularies: Vocabularies): Promise<Examined> {
  const { body, options, tokenizers } = asked;
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
  const prompt = templates[name](chatOf(JSON.parse(JSON.stringify(wire)) as Record<string, unknown>));
  return { model, textTokens: countPrompt(prompt, await vocabularies[name]()), media };
}
