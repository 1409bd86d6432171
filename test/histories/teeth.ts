// Whether histories notice when a rule of the protocol is missing, and how soon.

import { runHistory } from "./history.ts";
import { type Mutation, mutations } from "./mutations.ts";
import type { Violation } from "./rules.ts";

export interface Caught {
  name: string;
  mutation: Mutation;
  violation: Violation;
  /** The first that ended in a violation, of those from the first seed on. */
  histories: number;
}

/** Null: none of so many histories noticed. */
export function caught(name: string, histories_max: number): Caught | null {
  const mutation = mutations[name]!;
  for (let histories = 1; histories <= histories_max; histories++) {
    const { violation } = runHistory(histories, { defects: mutation.defects });
    if (violation) return { name, mutation, violation, histories };
  }
  return null;
}
