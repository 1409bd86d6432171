// Random numbers by purpose: each kind of thing that a seed decides has its own, so that a replay that leaves something
// out changes nothing about the rest.

import { type Chance, chanceOf } from "../faults/chance.ts";

/** The random numbers of one thing, by its kind and its index in the seed's history. */
export function chanceFor(seed: number, kind: number, index: number, number = 0): Chance {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(kind + 1, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x27d4eb2f) ^ Math.imul(index + 1, 0x165667b1);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x9e3779b1) ^ Math.imul(number + 1, 0x2c1b3c6d);
  return chanceOf(mixed ^ (mixed >>> 16));
}

/** The kinds of things that have separate random numbers. */
export const kindOf = {
  world: 1,
  node: 2,
  request: 3,
  fault: 4,
  message: 5,
  retry: 6,
  change: 7,
  kept: 8,
  passed: 9,
} as const;

export type Between = (from: number, to: number) => number;
export const betweenOf =
  (chance: Chance): Between =>
  (from, to) =>
    from + chance.below(to - from + 1);
/** A random number between `from` and `to`, distributed evenly over the orders of magnitude. */
export const spread = (chance: Chance, from: number, to: number) => Math.round(from * (to / from) ** chance.next());
