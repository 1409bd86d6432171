/**
 * The fault of an input that is longer than the model's context. Agents read from it how much they must shorten the
 * input, so it states the lengths of the input and of the context, and the input's is always the larger. Each protocol
 * has its own message for it.
 */
import { Fault, type FaultDetails, type SaidOverflow } from "./fault.ts";

/** The fault of an input that is too long. `said`: the lengths that the engine reported, if any. */
export function inputTooLong(said: SaidOverflow, details: FaultDetails = {}): Fault {
  return new Fault(
    "context_length_exceeded",
    "The input exceeds the context window of the model. Please reduce the length of the messages.",
    { ...details, param: "messages", overflow: said },
  );
}

/**
 * Adds the lengths of the context and of the input to this fault, and returns other faults unchanged. The context's
 * length is the engine's, or else the catalog's; the input's is the engine's count, or else the service's estimate. An
 * engine's count that would fit into the context is ignored: such an engine refused input and output together.
 */
export function withOverflow(fault: Fault, catalogTokens: number, estimate: number): Fault {
  const { overflow: said } = fault.details;
  if (fault.code !== "context_length_exceeded" || !said) return fault;
  const contextTokens = said.contextTokens ?? catalogTokens;
  const { inputTokens: counted = 0 } = said;
  const isEngines = counted > contextTokens && !(said.isAtLeast && estimate > counted);
  const inputTokens = isEngines ? counted : Math.max(estimate, contextTokens + 1);
  const body = {
    ...fault.details.body,
    context_tokens_by: said.contextTokens === undefined ? "catalog" : "engine",
    input_tokens_by: isEngines ? "engine" : "service",
  };
  return new Fault(fault.code, fault.message, { ...fault.details, body, overflow: { inputTokens, contextTokens } });
}
