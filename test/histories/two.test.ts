// The other half of test/histories/one.test.ts.

import { expect, test } from "bun:test";
import { isDeep } from "../harness/depth.ts";
import { manyHistories, seedsOf } from "./many.ts";

test.each(isDeep ? [0, 1, 2, 3] : [0])(
  "in 2,500 histories of nodes that crash and freeze over wires that fail, no rule of metering is broken (second half, part %i)",
  (part) => {
    const happened = manyHistories(seedsOf(4 + part, 8), 2_500);
    // They try what they are for: of the rarest some 45 are expected, and by chance below 30 once in a hundred parts.
    for (const [name, times] of Object.entries(happened))
      expect({ name, enough: times >= 20 }).toEqual({ name, enough: true });
  },
  120_000,
);
