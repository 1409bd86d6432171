import { masked } from "../inference/masked.ts";
import type { Organization } from "../store/directory.ts";
import type { KnownPlan } from "../store/plan.ts";
import type { BudgetedKey, OwnedKey, OwnedTeam } from "./owned.ts";

/** An administrator asked for something that cannot be done: the message says why, and what to do instead. */
export class ManagementError extends Error {
  override name = "ManagementError";
  constructor(
    message: string,
    readonly kind: RefusalKind = "invalid",
    /** Of `stale`: what there is now. */
    readonly current: Organization | KnownPlan | OwnedKey | BudgetedKey | OwnedTeam | null = null,
  ) {
    super(masked(message));
  }
}

/**
 * `taken`: something has the name already. `state`: it is not in a state in which that can be done. `stale`: it changed
 * since it was read. `reused`: another request had the same Idempotency-Key.
 */
export const refusalKinds = ["invalid", "not_found", "taken", "state", "stale", "reused"] as const;
export type RefusalKind = (typeof refusalKinds)[number];

export function fail(message: string, kind?: RefusalKind): never {
  throw new ManagementError(message, kind);
}
