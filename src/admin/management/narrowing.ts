/**
 * The filters that lists and reports have in common. A filter that names a thing which the caller may not see is
 * refused as if the thing did not exist.
 */
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { personOf } from "./people.ts";
import { teamNamed } from "./team.ts";

export interface Narrowing {
  /** The organization's slug or ID. */
  organization?: string | undefined;
  /** The team's ID, or with an organization its name. */
  team?: string | undefined;
  key?: string | undefined;
  person?: string | undefined;
}

/** The filters as IDs; a filter that is undefined excludes nothing. */
export interface Narrowed {
  organizationId?: string | undefined;
  teamId?: string | undefined;
  keyId?: string | undefined;
  personId?: string | undefined;
}

/**
 * The IDs for the given filters. A team or a key also determines the organization, which narrows the search. A `member`
 * gets only their own data. Past usage can still be found: by the ID of a removed team, and for an organization's
 * administrator by the ID of a person who has left.
 */
export async function narrowedBy(context: ManagementContext, given: Narrowing): Promise<Narrowed> {
  const owner = given.organization === undefined ? null : await context.organizationOf(given.organization);
  const team = given.team === undefined ? null : await teamNamed(context, given.team, owner, { isOrWas: true });
  const key = given.key === undefined ? null : await context.keyOf(given.key);
  const person = given.person === undefined ? context.person : await personIn(context, given.person);
  const owners = new Set([owner?.id, team?.organizationId, key?.organizationId].filter((id) => id !== undefined));
  if (owners.size > 1) fail("The organization, the team and the key do not belong together.");
  const [named] = owners;
  const organizationId = named ?? context.within ?? undefined;
  return { organizationId, teamId: team?.id, keyId: key?.id, personId: person ?? undefined };
}

async function personIn(context: ManagementContext, given: string): Promise<string> {
  const { person, within, people } = context;
  if (person === null && within !== null && (await people.wasIn(given, within))) return given;
  return (await personOf(context, given)).id;
}
