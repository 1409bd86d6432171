/** The codec of OpenAI Responses, for callers and for engines. */
import { bearer, type CallerCodec, type UpstreamCodec } from "../codec.ts";
import type { ResponseObject, ResponsesRequest } from "./contract.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeReply, streamDecoder } from "./decode-stream.ts";
import { encodeCompaction } from "./encode-compaction.ts";
import { compactionEncoder } from "./encode-compaction-stream.ts";
import { encodeRequest, unsupportedByResponses } from "./encode-request.ts";
import { encodeResponse } from "./encode-response.ts";
import { streamEncoder } from "./encode-stream.ts";
import { decodeFault, encodeFault } from "./fault.ts";
import { responsesForms } from "./forms.ts";
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

export const openaiResponsesUpstream: UpstreamCodec = {
  path: "/responses",
  headers: bearer,
  request: { encode: encodeRequest, refusal: unsupportedByResponses, forms: responsesForms },
  response: { decode: decodeReply },
  stream: { decoder: streamDecoder },
  fault: { decode: decodeFault },
};
