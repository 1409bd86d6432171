// The tests of 1,600 histories (simulated runs), in `npm run test:deep` 20,000. Two test files run half of them each,
// so that two cores work.

import { expect, test } from "bun:test";
import { isDeep, times } from "../harness/depth.ts";
import { manyHistories, seedsOf } from "./many.ts";

const histories = times(800, 2_500);
const parts = isDeep ? [0, 1, 2, 3] : [0];
/**
 * The least number of times that each event must happen. The rarest one is expected some 45 times in 2,500 histories,
 * and by chance fewer than 30 times in one run of a hundred.
 */
const least = times(1, 20);

/** The tests of one half: no rule is broken, and each kind of event has happened often enough. */
export function testHalf(half: "first" | "second"): void {
  test.each(parts)(
    `in ${histories} histories of nodes that crash and freeze over wires that fail, no rule of metering is broken (${half} half, part %i)`,
    (part) => {
      const happened = manyHistories(seedsOf(part + (half === "first" ? 0 : 4), 8), histories);
      for (const [name, count] of Object.entries(happened))
        expect({ name, enough: count >= least }).toEqual({ name, enough: true });
    },
    600_000,
  );
}
