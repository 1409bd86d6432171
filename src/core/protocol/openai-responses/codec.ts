/** The codec of OpenAI Responses, for callers and for engines. */
import { bearer, type CallerCodec, type UpstreamCodec, type WireForms } from "../codec.ts";
import { isObject } from "../json.ts";
import type { ResponseObject, ResponsesRequest } from "./contract.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeReply, streamDecoder } from "./decode-stream.ts";
import { encodeRequest, unsupportedByResponses } from "./encode-request.ts";
import { encodeCompaction, encodeResponse } from "./encode-response.ts";
import { compactionEncoder, streamEncoder } from "./encode-stream.ts";
import { decodeFault, encodeFault } from "./fault.ts";
import { isCompaction, remainder } from "./references.ts";

export const openaiResponsesCaller: CallerCodec<ResponsesRequest, ResponseObject> = {
  request: { decode: decodeRequest, remainder },
  response: {
    encode: (result, wire, endedAtSeconds) =>
      (isCompaction(wire) ? encodeCompaction : encodeResponse)(result, wire, endedAtSeconds),
  },
  stream: {
    encoder: (wire, context) => (isCompaction(wire) ? compactionEncoder : streamEncoder)(wire, context),
  },
  fault: { encode: encodeFault },
};

/** A text means the same as a list of one text part, and a message with its type the same as one without it. */
const responsesForms: WireForms = {
  textOf(list) {
    const [part] = list;
    if (list.length !== 1 || !isObject(part) || typeof part.text !== "string") return null;
    const size = Object.keys(part).length;
    const isPlain =
      (part.type === "input_text" && size === 2) ||
      (part.type === "output_text" && size === 3 && isEmptyList(part.annotations));
    return isPlain ? part.text : null;
  },
  isImplied: (name, value) =>
    (name === "type" && value === "message") ||
    (name === "detail" && value === "auto") ||
    (name === "annotations" && isEmptyList(value)),
};

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

export const openaiResponsesUpstream: UpstreamCodec = {
  path: "/responses",
  headers: bearer,
  request: { encode: encodeRequest, refusal: unsupportedByResponses, forms: responsesForms },
  response: { decode: decodeReply },
  stream: { decoder: streamDecoder },
  fault: { decode: decodeFault },
};
