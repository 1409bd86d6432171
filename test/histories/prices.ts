// What a token costs in a history.

export const prices = { input: 2000, cachedInput: 1000, cacheWrite: 3000, output: 10_000 };
/** A hold takes the dearest input price. */
export const heldInputPrice = 3;
