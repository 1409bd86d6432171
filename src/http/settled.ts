/** An inference request's end, as metrics see it. */
import type { Usage } from "../inference/usage.ts";
import type { Operation } from "../store/ledger.ts";

export interface Settled {
  operation: Operation;
  model: string;
  outcome: string;
  usage: Usage;
  firstPartMs: number | null;
}
