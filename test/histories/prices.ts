// What a token costs in a history.

export const prices = { input: 2, cachedInput: 1, cacheWrite: 3, output: 10, search: 300 };
/** A hold takes the dearest input price. */
export const heldInputPrice = 3;
