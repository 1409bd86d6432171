/** What a caller is told of a fault: a field that an engine named is named in the words of the caller's protocol. */
import type { Fault } from "../inference/fault.ts";
import type { Protocol } from "../inference/request.ts";
import { fieldIn } from "./fields.ts";

export interface FaultMessage {
  message: string;
  param: string | undefined;
}

export function faultMessage(protocol: Protocol, { message, details }: Fault): FaultMessage {
  const { param, engineProtocol } = details;
  if (param === undefined || engineProtocol === undefined) return { message, param };
  const field = fieldIn(protocol, { param, engineProtocol });
  if (field === undefined) return { message, param: field };
  const refusal = `The model's engine cannot serve this request because of '${field}'. Change that value, or choose another model.`;
  return { message: refusal, param: field };
}
