/** The cost of what a request used: docs/design/usage.md, Money and prices. */
import type { Prices } from "../inference/model.ts";
import { costOf } from "../inference/money.ts";
import type { Usage } from "../inference/usage.ts";

/** In nanos. For each kind of token, the price of the total is rounded once: rounded parts would add up to more. */
export function priceOf(usage: Usage, prices: Prices, searches = 0): number {
  return (
    costOf(searches, prices.search ?? 0) +
    costOf(usage.inputTokens, prices.input) +
    costOf(usage.cachedInputTokens, prices.cachedInput) +
    costOf(usage.cacheWriteTokens, prices.cacheWrite) +
    costOf(usage.outputTokens, prices.output)
  );
}
