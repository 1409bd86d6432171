// Measures whether histories (simulated runs) notice that a rule of the protocol is missing, and after how many
// histories.

import { runHistory } from "./history.ts";
import type { Mutation } from "./mutations.ts";
import { allMutations } from "./mutations-of-changes.ts";
import type { Violation } from "./rules.ts";
import { scenarioOf } from "./scenario.ts";

export interface Caught {
  name: string;
  mutation: Mutation;
  violation: Violation;
  /** The seed of the history with the violation, which is also the number of histories that were run. */
  histories: number;
}

/** The first history that notices a mutation; null if none of `histories_max` does. */
export function caught(name: string, histories_max: number): Caught | null {
  const mutation = allMutations[name]!;
  const under = mutation.under ?? [];
  for (let histories = 1; histories <= histories_max; histories++) {
    if (under.length > 0 && !scenarioOf(histories).faults.some(({ kind }) => under.includes(kind))) continue;
    const { violation } = runHistory(histories, { defects: mutation.defects, only: mutation.under });
    if (violation) return { name, mutation, violation, histories };
  }
  return null;
}
