/** The codec of OpenAI chat completions, for callers and for engines. */
import { bearer, type CallerCodec, singleForms, type UpstreamCodec } from "../codec.ts";
import type { ChatCompletion, ChatCompletionRequest } from "./contract.ts";
import { decodeRequest, remainder } from "./decode-request.ts";
import { decodeReply, streamDecoder } from "./decode-stream.ts";
import { encodeRequest, unsupportedByChat } from "./encode-request.ts";
import { encodeResponse, streamEncoder } from "./encode-response.ts";
import { decodeFault, encodeFault } from "./fault.ts";

export const openaiChatCaller: CallerCodec<ChatCompletionRequest, ChatCompletion> = {
  request: { decode: decodeRequest, remainder },
  response: { encode: encodeResponse },
  stream: { encoder: streamEncoder },
  fault: { encode: encodeFault },
};

export const openaiChatUpstream: UpstreamCodec = {
  path: "/chat/completions",
  headers: bearer,
  request: { encode: encodeRequest, refusal: unsupportedByChat, forms: singleForms },
  response: { decode: decodeReply },
  stream: { decoder: streamDecoder },
  fault: { decode: decodeFault },
};
