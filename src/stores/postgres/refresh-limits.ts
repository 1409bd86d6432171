/**
 * Updates the limits in force in the ledger, after something has changed from which they are derived (the SQL function
 * `limits_refresh`).
 */
import type { Querying } from "./database.ts";

/**
 * Updates the limits in force of an organization's subjects. `only`: the UUIDs of the subjects that may be affected;
 * null for all. Returns the subjects for which `sumEarlier` must follow the commit.
 */
export async function refreshLimits(tx: Querying, owner: string, only: readonly string[] | null): Promise<string[]> {
  const rows = await tx.query<{ id: string }>("select id from limits_refresh($1, $2::uuid[]) id", [owner, only]);
  return rows.map(({ id }) => id);
}

/** Like `refreshLimits`, for a person whose membership in these organizations has changed. */
export async function refreshPerson(tx: Querying, owners: readonly string[], person: string): Promise<string[]> {
  if (owners.length === 0) return [];
  // All locks are taken before the first change is recorded. To record a change also locks the row that has the number
  // of the last change.
  await lockOrganizations(tx, owners);
  await tx.query("select usage_lock(array(select id from unnest($1::uuid[]) id order by id))", [owners]);
  const rows = await tx.query<{ id: string }>(
    "select distinct s.id from unnest($1::uuid[]) o (id), limits_refresh_person(o.id, $2) s (id)",
    [owners, person],
  );
  return rows.map(({ id }) => id);
}

/** Locks the organizations until the commit, in one order, so that no deadlock is possible. */
export async function lockOrganizations(tx: Querying, owners: readonly string[]): Promise<void> {
  await tx.query("select id from organization where id = any ($1::uuid[]) order by id for no key update", [owners]);
}
