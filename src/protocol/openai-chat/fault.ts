/** Faults, both ways: ours in OpenAI's envelope, and an engine's refusal as a fault that tells nothing of the engine. */
import type { Fault } from "../../inference/fault.ts";
import { envelopeOf } from "../envelope/encode.ts";
import { namedField } from "../fields.ts";
import { errorOf, refusalFault } from "../refusal.ts";
import type { ChatError } from "./contract.ts";
import { ChatCompletionRequest as contract } from "./contract.ts";

export function encodeFault(fault: Fault, requestId: string): ChatError {
  return envelopeOf(fault, requestId, "openai-chat");
}

/** What an engine's refusal means to the caller; its words never pass (refusal.ts). */
export function decodeFault(status: number, body: unknown): Fault {
  const error = errorOf(body);
  return refusalFault(status, error, namedField("openai-chat", contract, error.param));
}
