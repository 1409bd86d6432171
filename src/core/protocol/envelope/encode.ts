/** Writes a fault in the envelope of OpenAI's protocols. */
import { type Fault, faultCatalogue } from "../../inference/fault.ts";
import type { Protocol } from "../../inference/request.ts";
import { faultMessage } from "../fault-message.ts";
import type { OpenaiError } from "./contract.ts";

export function envelopeOf(fault: Fault, requestId: string, protocol: Protocol): OpenaiError {
  return {
    error: {
      message: messageIn(protocol, fault),
      type: faultCatalogue[fault.code].type,
      param: faultMessage(protocol, fault).param ?? null,
      code: fault.code,
      request_id: requestId,
      ...fault.details.body,
    },
  };
}

/**
 * The message of a fault. Clients recognise an input that is too long by parts of this sentence: LiteLLM by its
 * beginning, pi by its middle, and LangChain for Python by the code at its end, because openai 3.49 and newer shows
 * only the message.
 */
export function messageIn(protocol: Protocol, fault: Fault): string {
  const { inputTokens, contextTokens } = fault.details.overflow ?? {};
  if (inputTokens === undefined || contextTokens === undefined) return faultMessage(protocol, fault).message;
  return `This model's maximum context length is ${contextTokens} tokens, and the input of about ${inputTokens} tokens exceeds the context window. Please reduce the length of the messages. (${fault.code})`;
}
