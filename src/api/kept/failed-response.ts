/** A background response that failed. */
import type { Fault } from "../../inference/fault.ts";
import type { ResponseObject } from "../../protocol/openai-responses/contract.ts";
import { encodeFailure } from "../../protocol/openai-responses/fault.ts";

export function failedResponse(begun: ResponseObject, fault: Fault, requestId: string): ResponseObject {
  return { ...begun, status: "failed", error: encodeFailure(fault, requestId) };
}
