/** Random numbers that are determined by a seed, so that a run can be repeated. */
export interface Chance {
  /** A number that is at least 0 and below 1. */
  fraction(): number;
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number;
  pick<T>(items: readonly T[]): T;
}

/** The generator Mulberry32 by Tommy Ettinger, with 32 bits of state, which is good enough for choosing faults. */
export function chanceFrom(seed: number): Chance {
  let state = seed >>> 0;
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, most: number) => least + Math.floor(fraction() * (most - least + 1));
  const pick = <T>(items: readonly T[]): T => {
    if (items.length === 0) throw new Error("There is nothing to pick from.");
    return items[between(0, items.length - 1)] as T;
  };
  return { fraction, between, pick };
}
