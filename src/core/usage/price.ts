/** The price of tokens, in whole micro-units: docs/design/usage.md, Units and prices. */
import type { Prices } from "../inference/model.ts";
import type { Usage } from "../inference/usage.ts";

export function priceOf(usage: Usage, prices: Prices): number {
  return (
    usage.inputTokens * prices.input +
    usage.cachedInputTokens * prices.cachedInput +
    usage.cacheWriteTokens * prices.cacheWrite +
    usage.outputTokens * prices.output
  );
}
