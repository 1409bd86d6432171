/** The price of tokens, in whole micro-nanos: docs/design/usage.md, Units and prices. */
import type { Prices } from "../inference/model.ts";
import type { Usage } from "../inference/usage.ts";

/** `searches`: those that a request makes, if its answer is charged. */
export function priceOf(usage: Usage, prices: Prices, searches = 0): number {
  return (
    searches * (prices.search ?? 0) +
    usage.inputTokens * prices.input +
    usage.cachedInputTokens * prices.cachedInput +
    usage.cacheWriteTokens * prices.cacheWrite +
    usage.outputTokens * prices.output
  );
}
