/**
 * Decides which callers are bound by the rule that people cannot raise the limits that count for themselves
 * (docs/access.md, Limits of one's own).
 */
import type { OwnLimits } from "../store/own-limits.ts";
import type { ManagementOptions } from "./context.ts";
import { fail } from "./error.ts";

/**
 * The person who acts through a role in an organization. Null: the rule does not bind the caller. It does not bind an
 * `admin`, who sets everybody's plans and limits, nor operators and the node's local user, who do not call models.
 */
export function ownLimitsOf({ actor, within }: Pick<ManagementOptions, "actor" | "within">): OwnLimits | null {
  const personId = personActing(actor);
  if (within == null || personId === null) return null;
  return { personId, organizationId: within, refuse };
}

/** The ID of the person who acts; null: an operator, the node's local user, or the service acts. */
export const personActing = (actor: string): string | null =>
  actor.startsWith(personal) ? actor.slice(personal.length) : null;

const personal = "person:";

function refuse(): never {
  return fail(
    "This would raise what counts for you: your own limits, or those of your keys, your team or its members. Ask another administrator.",
    "wrong_state",
  );
}
