// Seeded random choices: the same seed gives the same choices.

import { random } from "../../src/features/simulator/text.ts";

export class Draw {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = random(seed);
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.#next() * count);
  }

  one<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}
