/** OpenAI Responses, both ways. */
import type { CallerCodec, UpstreamCodec } from "../codec.ts";
import type { ResponseObject, ResponsesRequest } from "./contract.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeReply, streamDecoder } from "./decode-stream.ts";
import { encodeRequest, refusalOf } from "./encode-request.ts";
import { encodeResponse } from "./encode-response.ts";
import { streamEncoder } from "./encode-stream.ts";
import { decodeFault, encodeFault } from "./fault.ts";
import { responsesForms } from "./forms.ts";
import { remainder } from "./references.ts";

export const openaiResponsesCaller: CallerCodec<ResponsesRequest, ResponseObject> = {
  request: { decode: decodeRequest, remainder },
  response: { encode: encodeResponse },
  stream: { encoder: streamEncoder },
  fault: { encode: encodeFault },
};

export const openaiResponsesUpstream: UpstreamCodec = {
  path: "/responses",
  request: { encode: encodeRequest, refusal: refusalOf, forms: responsesForms },
  response: { decode: decodeReply },
  stream: { decoder: streamDecoder },
  fault: { decode: decodeFault },
};
