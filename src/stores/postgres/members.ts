/** Moves the keys of people to the team of the person's membership, through SQL functions. */
import type { Querying } from "./database.ts";
import { refreshPerson } from "./refresh-limits.ts";

/**
 * The UUID of the team of a person's membership in an organization. Null if the membership has no team; "no_membership"
 * if there is no membership.
 */
export async function teamOfMember(
  tx: Querying,
  owner: string,
  person: string,
): Promise<string | null | "no_membership"> {
  const rows = await tx.query<{ team: string | null }>("select team_id as team from usage_team_of($1, $2)", [
    owner,
    person,
  ]);
  return rows.length === 0 ? "no_membership" : rows[0]!.team;
}

/**
 * Moves a person's key to the team of the membership. A change of a membership moves the person's keys by itself; this
 * function is for keys that an older version did not move. Returns the subjects for which `sumAll` must follow.
 */
export async function followMembership(
  tx: Querying,
  key: { id: string; owner: string; person: string },
): Promise<string[]> {
  const astray = await tx.query(
    `select from usage_subject s, usage_team_of($2, $3) t where s.subject_id = $1 and s.team_id is distinct from t.team_id`,
    [key.id, key.owner, key.person],
  );
  return astray.length === 0 ? [] : refreshPerson(tx, [key.owner], key.person);
}

/** Makes the use of a new key count in its person's use. The key must be in the ledger already. */
export async function countInPerson(tx: Querying, key: { id: string; owner: string; person: string }): Promise<void> {
  await tx.query("update usage_subject set member_id = usage_member($2, $3) where subject_id = $1", [
    key.id,
    key.owner,
    key.person,
  ]);
}
