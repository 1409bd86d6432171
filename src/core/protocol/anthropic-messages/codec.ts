/** The codec of Anthropic Messages, for callers and for engines. */
import type { CallerCodec, UpstreamCodec } from "../codec.ts";
import type { Message, MessagesRequest } from "./contract.ts";
import { decodeRequest, decodingSteps, type MessagesOptions } from "./decode-request.ts";
import { decodeReply, streamDecoder } from "./decode-stream.ts";
import { encodeRequest } from "./encode-request.ts";
import { encodeResponse } from "./encode-response.ts";
import { streamEncoder } from "./encode-stream.ts";
import { decodeFault, encodeFault } from "./fault.ts";
import { messagesForms } from "./forms.ts";
import { unsupportedByMessages } from "./request-refusal.ts";

/** The header in which a caller names betas, the parts of the protocol that not every account has yet. */
export const betasHeader = "anthropic-beta";

export function anthropicMessagesCaller(options: MessagesOptions = {}): CallerCodec<MessagesRequest, Message> {
  return {
    request: {
      decode: (wire) => decodeRequest(wire, options),
      decodingSteps: (wire) => decodingSteps(wire, options),
      remainder: (wire) => ({ ...wire, system: "", messages: [], tools: [] }),
    },
    response: { encode: encodeResponse },
    stream: { encoder: streamEncoder },
    fault: { encode: encodeFault },
  };
}

export const anthropicMessagesUpstream: UpstreamCodec = {
  path: "/messages",
  betasHeader,
  headers: (key) => ({ "anthropic-version": "2023-06-01", ...(key !== null && { "x-api-key": key }) }),
  request: { encode: encodeRequest, refusal: unsupportedByMessages, forms: messagesForms },
  response: { decode: decodeReply },
  stream: { decoder: streamDecoder },
  fault: { decode: decodeFault },
};
