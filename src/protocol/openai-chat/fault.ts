/** Faults, both ways: ours in OpenAI's envelope, and an engine's refusal as a fault that tells nothing of the engine. */
import type { Fault } from "../../inference/fault.ts";
import { envelopeOf } from "../envelope/encode.ts";
import { textOf } from "../json.ts";
import { errorOf, refusalFault } from "../refusal.ts";
import type { ChatError } from "./contract.ts";
import { ChatCompletionRequest as contract } from "./contract.ts";

export function encodeFault(fault: Fault, requestId: string): ChatError {
  return envelopeOf(fault, requestId);
}

/** What an engine's refusal means to the caller; its words never pass (refusal.ts). */
export function decodeFault(status: number, body: unknown): Fault {
  const error = errorOf(body);
  return refusalFault(status, error, ourField(error.param));
}

/** A path that begins with a field of our contract may be named; anything else might be the engine's own word. */
function ourField(param: unknown): string | undefined {
  const path = textOf(param);
  if (path.length > 128 || !/^[a-z_]+([.[][a-z0-9_\]]+)*$/.test(path)) return undefined;
  const root = path.split(/[.[]/)[0] ?? "";
  return root !== "model" && Object.hasOwn(contract.properties, root) ? path : undefined;
}
