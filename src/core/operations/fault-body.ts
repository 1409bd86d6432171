/** The body of a fault in the protocol of its path; on paths of several protocols, in the client's protocol. */

import type { FaultBody } from "../http/fault-answer.ts";
import type { Fault } from "../inference/fault.ts";
import { encodeFault as messagesFault } from "../protocol/anthropic-messages/fault.ts";
import { encodeFault as openaiFault } from "../protocol/openai-chat/fault.ts";
import { encodeFault as responsesFault } from "../protocol/openai-responses/fault.ts";
import type { FaultShape } from "./operation.ts";

export function faultBodyOf(shape: FaultShape = "error"): FaultBody {
  return faultBodies[shape];
}

const faultBodies: Record<FaultShape, FaultBody> = {
  error: openaiFault,
  messages: messagesFault,
  responses: responsesFault,
  client: faultBodyForClient,
};

/** Whether a client speaks Messages: only such clients send the version that they speak. */
function isMessagesClient(request: Request): boolean {
  return request.headers.has("anthropic-version");
}

function faultBodyForClient(fault: Fault, requestId: string, request: Request): unknown {
  return isMessagesClient(request) ? messagesFault(fault, requestId) : openaiFault(fault, requestId);
}
