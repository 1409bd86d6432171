// What a token costs in a history, in picos. No price is a whole nano, so that every cost is rounded.

export const prices = { input: 2300, cachedInput: 1100, cacheWrite: 2900, output: 10_700, search: 301_000 };
/** A hold takes the dearest input price. */
export const heldInputPrice = prices.cacheWrite;

/** The nanos that this many tokens cost: their exact price, rounded up. */
export function costOf(tokens: number, price_picos: number): number {
  return Math.ceil((tokens * price_picos) / 1000);
}
