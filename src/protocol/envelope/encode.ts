/** A fault in the envelope of OpenAI's protocols. */
import { type Fault, faultCatalogue } from "../../inference/fault.ts";
import type { OpenaiError } from "./contract.ts";

export function envelopeOf(fault: Fault, requestId: string): OpenaiError {
  return {
    error: {
      message: fault.message,
      type: faultCatalogue[fault.code].type,
      param: fault.details.param ?? null,
      code: fault.code,
      request_id: requestId,
      ...fault.details.body,
    },
  };
}
