// The prices of a token in histories (simulated runs), in picos. No price is a whole number of nanos, so that every
// cost is rounded.

export const prices = { input: 2300, cachedInput: 1100, cacheWrite: 2900, output: 10_700, search: 301_000 };
/** The input price of a hold, which is the highest one. */
export const heldInputPrice = prices.cacheWrite;

/** The nanos that this many tokens cost: their exact price, rounded up. */
export function costOf(tokens: number, price_picos: number): number {
  return Math.ceil((tokens * price_picos) / 1000);
}
