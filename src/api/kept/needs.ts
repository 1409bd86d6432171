/** Types and faults that the writers and the readers of kept answers share. */
import { Fault } from "../../inference/fault.ts";
import type { Dependencies } from "../dependencies.ts";

export type KeepingNeeds = Pick<Dependencies, "kept" | "ledger" | "limits" | "log">;

/** The first entry of a log. */
export interface LogHead {
  stream: boolean;
  headers: Record<string, string>;
}

export function answerLost(): Fault {
  return new Fault(
    "idempotency_answer_lost",
    "The answer to the first request with this 'idempotency-key' is no longer there: it was too large to be kept, made room for others, or was lost. It was charged then. Use a new key to ask again.",
    { param: "idempotency-key" },
  );
}
