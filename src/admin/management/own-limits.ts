/**
 * Binds a caller to the rule that no act of a person raises the limits that count for that person (docs/access.md,
 * Limits of one's own).
 */
import type { OwnLimits } from "../store/own-limits.ts";
import type { ManagementOptions } from "./context.ts";
import { fail } from "./error.ts";

/**
 * The person who acts by a role in an organization. Null: the caller is not bound by the rule. An `admin` sets plans
 * and limits of all, and operators and the user of a node are not people who call models.
 */
export function ownLimitsOf({ actor, within }: Pick<ManagementOptions, "actor" | "within">): OwnLimits | null {
  const personId = personActing(actor);
  if (within == null || personId === null) return null;
  return { personId, organizationId: within, refuse };
}

/** The ID of the person who acts; null: an operator, the user of a node, or the service. */
export const personActing = (actor: string): string | null =>
  actor.startsWith(personal) ? actor.slice(personal.length) : null;

const personal = "person:";

function refuse(): never {
  return fail(
    "This would raise what counts for you: your own limits, or those of your keys, your team or its members. Ask another administrator.",
    "wrong_state",
  );
}
