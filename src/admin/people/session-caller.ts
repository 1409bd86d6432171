/**
 * The caller of management verbs for a session of the console. A person acts through one membership at a time: always
 * the membership as `admin` of the service, if there is one; else the membership in the organization that the request
 * names; else a membership of the whole service; else the first membership. Pure.
 */

import { Fault } from "../../core/inference/fault.ts";
import type { ConsoleSession } from "../../features/identity/console.ts";
import type { KnownPerson, Membership } from "../../features/identity/store/people.ts";
import { type Caller, localCaller, operatorCaller } from "../management/caller.ts";

/** The header by which a page names the organization in which it acts, by slug or ID. */
export const organizationHeader = "x-sluice-organization";

export function callerOf(session: ConsoleSession, organization: string | null): Caller {
  if (session.kind === "person") return personCaller(session.person.known, organization);
  // A browser that opened a link from `sluice console` acts as the user of the node's machine, like commands on that
  // machine.
  return session.operator
    ? operatorCaller(session.operator)
    : { ...localCaller(`cli:${session.localUser}`), name: session.localUser };
}

function personCaller({ id, memberships }: KnownPerson, organization: string | null): Caller {
  const { role, organizationId } = membershipFor(memberships, organization);
  return {
    role,
    name: id,
    actor: `person:${id}`,
    within: organizationId,
    person: role === "member" ? id : null,
    noted: { person: id },
  };
}

function membershipFor(memberships: readonly Membership[], named: string | null): Membership {
  const service = memberships.find(({ organizationId }) => organizationId === null);
  if (service?.role === "admin") return service;
  const isNamed = (one: Membership) => one.organizationId === named || one.organization === named;
  const own = memberships.find((one) => one.organizationId !== null && (named === null || isNamed(one)));
  const found = named === null ? (service ?? own) : (own ?? service);
  if (found) return found;
  throw new Fault("missing_role", `You have no membership in the organization that '${organizationHeader}' names.`);
}
