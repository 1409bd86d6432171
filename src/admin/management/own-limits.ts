/** Binds somebody to the rule that no act of a person raises what counts for that person (docs/access.md, Limits of one's own). */
import type { OwnLimits } from "../store/own-limits.ts";
import type { ManagementOptions } from "./context.ts";
import { fail } from "./error.ts";

/**
 * The person who acts by a role in an organization; null: a caller who is not bound. An `admin` sets plans and limits of all,
 * and operators and the user of a node are no people who call models.
 */
export function ownLimitsOf({ actor, within }: Pick<ManagementOptions, "actor" | "within">): OwnLimits | null {
  if (within == null || !actor.startsWith(personal)) return null;
  return { personId: actor.slice(personal.length), organizationId: within, refuse };
}

const personal = "person:";

function refuse(): never {
  return fail(
    "This would raise what counts for you: your own limits, or those of your keys, your team or its members. Ask another administrator.",
    "wrong_state",
  );
}
