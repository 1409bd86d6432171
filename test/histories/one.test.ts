// One half of sixteen hundred histories, and in `npm run test:deep` of twenty thousand: two files share them, so that two
// cores do.

import { expect, test } from "bun:test";
import { isDeep, times } from "../harness/depth.ts";
import { manyHistories, seedsOf } from "./many.ts";

const histories = times(800, 2_500);
/**
 * The least number of times that each event must be seen. The rarest one is expected some 45 times in 2,500 histories,
 * and by chance fewer than 30 times in one run of a hundred.
 */
const least = times(1, 20);

test.each(isDeep ? [0, 1, 2, 3] : [0])(
  `in ${histories} histories of nodes that crash and freeze over wires that fail, no rule of metering is broken (first half, part %i)`,
  (part) => {
    const happened = manyHistories(seedsOf(part, 8), histories);
    // Each kind of event has happened often enough in the histories.
    for (const [name, count] of Object.entries(happened))
      expect({ name, enough: count >= least }).toEqual({ name, enough: true });
  },
  120_000,
);
