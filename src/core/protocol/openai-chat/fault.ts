/** Writes faults in OpenAI's envelope, and turns an engine's refusal into a fault that reveals nothing of the engine. */
import type { Fault } from "../../inference/fault.ts";
import type { Dialect } from "../dialect.ts";
import { dialects } from "../dialects.ts";
import { envelopeOf } from "../envelope/encode.ts";
import { fieldNamer } from "../fields.ts";
import { errorOf, refusalFault } from "../refusal.ts";
import type { ChatError } from "./contract.ts";
import { ChatCompletionRequest as contract } from "./contract.ts";

export function encodeFault(fault: Fault, requestId: string): ChatError {
  return envelopeOf(fault, requestId, "openai-chat");
}

export function decodeFault(status: number, body: unknown, { refusals }: Dialect = dialects.generic): Fault {
  return refusalFault(status, errorOf(body), refusals, named);
}

const named = fieldNamer("openai-chat", contract);
