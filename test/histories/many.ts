// Runs thousands of histories, for tests. Each run has seeds of its own, and the report of a violation says how to see it
// again.

import { seed as runSeed } from "../harness/depth.ts";
import { type Counts, noCounts } from "./counts.ts";
import { runHistory } from "./history.ts";
import { reportOf } from "./report.ts";
import { shortest } from "./shrink.ts";

/** Throws the report of the first violation; otherwise returns the counts of what happened in all histories. */
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

/** The first seed in a part of 2^31 that no other test looks at. It differs with the seed of the run. */
export function seedsOf(part: number, parts: number): number {
  const width = Math.floor(2 ** 31 / parts);
  return part * width + (runSeed % Math.floor(width / 2));
}
