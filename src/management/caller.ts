/** Who calls a verb, on whichever way: with a role, and within what. */
import type { Actor } from "../store/directory.ts";
import type { Operator, Role } from "../store/operators.ts";

/** A `member` sees only their own data, through a session of the console; all others see more. */
export type CallerRole = Role | "member";

export interface Caller {
  role: CallerRole;
  /** In a message: `operator ann`. */
  name: string;
  /** In the audit log. */
  actor: Actor;
  /** The one organization that the caller sees; null: all. */
  within: string | null;
  /** The one person that a `member` sees; null: everybody. */
  person: string | null;
  /** In the line of the request in the log. */
  noted: { operator: string } | { person: string };
}

export function operatorCaller({ id, name, role, organizationId }: Operator): Caller {
  return {
    role,
    name: `operator ${name}`,
    actor: `operator:${name}`,
    within: organizationId,
    person: null,
    noted: { operator: id },
  };
}

/** Who administers the node on its own machine. */
export function localCaller(actor: Actor): Caller {
  return { role: "admin", name: actor, actor, within: null, person: null, noted: { operator: actor } };
}
