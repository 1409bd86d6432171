/**
 * An input that is longer than the model's context. Agents read from the fault how much they must shorten, so it tells both
 * numbers, and never an input that would fit. Each protocol has words of its own for it.
 */
import { compact } from "./compact.ts";
import { Fault, type FaultDetails } from "./fault.ts";

/** `counted` is the engine's own count of the input, where it gave one. */
export function inputTooLong(counted: number | undefined, details: FaultDetails = {}): Fault {
  return new Fault(
    "context_length_exceeded",
    "The input exceeds the context window of the model. Please reduce the length of the messages.",
    { ...details, param: "messages", overflow: compact({ inputTokens: counted }) },
  );
}

/**
 * The same fault with both numbers; every other fault as it is. An engine whose own context is smaller than the catalog
 * says, or that counts the output in, may give a number that would fit: it is no number then.
 */
export function withOverflow(fault: Fault, contextTokens: number, inputTokensEstimate: number): Fault {
  if (fault.code !== "context_length_exceeded" || !fault.details.overflow) return fault;
  const { inputTokens: counted = 0 } = fault.details.overflow;
  const inputTokens = counted > contextTokens ? counted : Math.max(inputTokensEstimate, contextTokens + 1);
  return new Fault(fault.code, fault.message, { ...fault.details, overflow: { inputTokens, contextTokens } });
}
