// Runs thousands of histories (simulated runs), for tests. Each test run has different seeds, and the report of a
// violation says how to replay it.

import { seed as runSeed } from "../harness/depth.ts";
import { type Counts, noCounts } from "./counts.ts";
import { runHistory } from "./history.ts";
import { reportOf } from "./report.ts";
import { shortest } from "./shrink.ts";

/** Throws the report of the first violation; otherwise returns the counts of the events in all histories. */
export function manyHistories(first: number, count: number): Counts {
  const totals = { ...noCounts };
  for (let seed = first; seed < first + count; seed++) {
    const { violation, counts } = runHistory(seed);
    if (violation) {
      const broken = shortest(seed);
      throw new Error(broken ? reportOf(broken) : `seed ${seed} breaks "${violation.rule}" once, and not again`);
    }
    for (const name of Object.keys(totals) as (keyof Counts)[]) totals[name] += counts[name];
  }
  return totals;
}

/**
 * The first seed of a range that no other test uses: the `part`th of `parts` equal parts of 2^31. It depends on the
 * seed of the test run.
 */
export function seedsOf(part: number, parts: number): number {
  const width = Math.floor(2 ** 31 / parts);
  return part * width + (runSeed % Math.floor(width / 2));
}
