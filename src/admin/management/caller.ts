/** The caller of a verb of management, over any transport: the role, and what the caller may see. */
import type { Actor } from "../../core/store/directory.ts";
import type { Operator, Role } from "../../features/identity/store/operators.ts";

/** The role of a caller. A `member` uses the console and sees only their own data; all other roles see more. */
export type CallerRole = Role | "member";

export interface Caller {
  role: CallerRole;
  /** The caller's name in messages: `operator ann`. */
  name: string;
  actor: Actor;
  /** The only organization that the caller sees; null: the caller sees all organizations. */
  within: string | null;
  /** The only person whose data a `member` sees; null: the caller sees everybody's data. */
  person: string | null;
  /** The fields that name the caller in the log line of the request. */
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

/** The caller for somebody who administers on the node's own machine. */
export function localCaller(actor: Actor): Caller {
  return { role: "admin", name: actor, actor, within: null, person: null, noted: { operator: actor } };
}
