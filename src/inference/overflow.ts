/**
 * The fault of an input that is longer than the model's context. Agents read from it how much they must shorten, so it has
 * both numbers, and the input is always above the context. Each protocol has a message of its own for it.
 */
import { compact } from "./compact.ts";
import { Fault, type FaultDetails } from "./fault.ts";

/** `counted` is the engine's count of the input, if it gave one. */
export function inputTooLong(counted: number | undefined, details: FaultDetails = {}): Fault {
  return new Fault(
    "context_length_exceeded",
    "The input exceeds the context window of the model. Please reduce the length of the messages.",
    { ...details, param: "messages", overflow: compact({ inputTokens: counted }) },
  );
}

/**
 * Adds both numbers to this fault, and returns other faults unchanged. An engine whose context is smaller than the catalog
 * says, or that includes the output, may give a count that would fit. Such a count is ignored.
 */
export function withOverflow(fault: Fault, contextTokens: number, inputTokensEstimate: number): Fault {
  if (fault.code !== "context_length_exceeded" || !fault.details.overflow) return fault;
  const { inputTokens: counted = 0 } = fault.details.overflow;
  const inputTokens = counted > contextTokens ? counted : Math.max(inputTokensEstimate, contextTokens + 1);
  return new Fault(fault.code, fault.message, { ...fault.details, overflow: { inputTokens, contextTokens } });
}
