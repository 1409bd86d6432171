/** The message of a fault for a caller. A field that an engine named gets its name in the caller's protocol. */
import type { Fault } from "../inference/fault.ts";
import type { Protocol } from "../inference/request.ts";
import { sentenceFor } from "./engine-sentence.ts";
import { fieldIn } from "./fields.ts";

export function faultMessage(
  protocol: Protocol,
  { message, details }: Fault,
): { message: string; param: string | undefined } {
  const { param, engineProtocol, sentence } = details;
  const said = sentence && sentenceFor(protocol, sentence);
  if (said) {
    const field = sentence.find((piece) => typeof piece !== "string");
    return { message: said, param: field && fieldIn(protocol, field) };
  }
  if (param === undefined || engineProtocol === undefined) return { message, param };
  const field = fieldIn(protocol, { param, engineProtocol });
  if (field === undefined) return { message, param: undefined };
  return {
    message: `The model's engine cannot serve this request because of '${field}'. Change that value, or choose another model.`,
    param: field,
  };
}
