/** The codec of Anthropic Messages, for callers and for engines. */
import type { CallerCodec, UpstreamCodec, WireForms } from "../codec.ts";
import { isObject } from "../json.ts";
import type { Message, MessagesRequest } from "./contract.ts";
import { decodeRequest, decodingSteps, type MessagesOptions } from "./decode-request.ts";
import { decodeReply, streamDecoder } from "./decode-stream.ts";
import { encodeRequest, unsupportedByMessages } from "./encode-request.ts";
import { encodeResponse } from "./encode-response.ts";
import { streamEncoder } from "./encode-stream.ts";
import { decodeFault, encodeFault } from "./fault.ts";

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

/** A text means the same as a list of one text block with that text, and `is_error: false` the same as none. */
const messagesForms: WireForms = {
  textOf(list) {
    const [block] = list;
    if (list.length !== 1 || !isObject(block) || block.type !== "text" || typeof block.text !== "string") return null;
    return Object.keys(block).length === 2 ? block.text : null;
  },
  isImplied: (name, value) => name === "is_error" && value === false,
};

export const anthropicMessagesUpstream: UpstreamCodec = {
  path: "/messages",
  betasHeader,
  headers: (key) => ({ "anthropic-version": "2023-06-01", ...(key !== null && { "x-api-key": key }) }),
  request: { encode: encodeRequest, refusal: unsupportedByMessages, forms: messagesForms },
  response: { decode: decodeReply },
  stream: { decoder: streamDecoder },
  fault: { decode: decodeFault },
};
