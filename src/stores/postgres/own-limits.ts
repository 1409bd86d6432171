/**
 * Holds the acts of a person to the rule that none raises what counts for that person (docs/access.md, Limits of one's own).
 * The rule is here alone, around every transaction, so no verb can forget it.
 */

import { type CountingLimits, isAnyRaised, type OwnLimits } from "../../admin/store/own-limits.ts";
import { bare } from "../../core/store/ids.ts";
import type { Database, Transaction } from "./database.ts";

/** The same database, for the acts of this person. */
export function heldToOwnLimits(db: Database, own: OwnLimits | null): Database {
  if (own === null) return db;
  const [person, organization] = [bare(own.personId, "per_"), bare(own.organizationId, "org_")];
  return {
    ...db,
    transaction(work, options) {
      // The sum of earlier use has a time of its own. It changes no limit, and others must not wait for it.
      if (options) return db.transaction(work, options);
      return db.transaction(async (tx) => {
        // Whatever changes limits locks the organization too: what counts is the same until the act's own changes. The
        // person's row comes first, as at a sign-in.
        await tx.query("select id from person where id = $1 for no key update", [person]);
        await tx.query("select id from organization where id = $1 for update", [organization]);
        const before = await countingFor(tx, organization, person);
        const answer = await work(tx);
        if (isAnyRaised(before, await countingFor(tx, organization, person))) own.refuse();
        return answer;
      });
    },
  };
}

/** Everything that counts for a person in an organization, keys that are not revoked one by one. */
function countingFor(tx: Pick<Transaction, "query">, organization: string, person: string): Promise<CountingLimits[]> {
  return tx.query<CountingLimits>(counting, [organization, person]);
}

const names = [
  "session_units",
  "week_units",
  "month_units",
  "concurrent_requests",
  "requests_per_minute",
  "tokens_per_minute",
];
const arrayOf = (limits: (name: string) => string) => `array[${names.map(limits).join(", ")}]`;

const counting = `
  with own_team as (
    select t.id from usage_team_of($1, $2) t (id) where t.id is not null
  ), counted as (
    select 'all' as entrance, 'person' as place, null::uuid as team, usage_member($1, $2) as subject
    union all select 'new', 'team', id, id from own_team
    union all select k.id::text, 'key', null, k.id from api_key k
      where k.person_id = $2 and k.organization_id = $1 and k.revoked_at is null
    union all select k.id::text, 'team', s.team_id, s.team_id from api_key k join usage_subject s on s.subject_id = k.id
      where k.person_id = $2 and k.organization_id = $1 and k.revoked_at is null and s.team_id is not null
  )
  select c.entrance, c.place, c.team, ${arrayOf((name) => `s.${name}`)} as limits,
    ${arrayOf((name) => `usage_raised(s.${name}, r.${name})`)} as raised, r.ends_at as "raisedUntil"
  from counted c left join usage_subject s on s.subject_id = c.subject
  left join lateral usage_raise_of(c.subject, store_now()) r on true
  union all (
    select 'new', 'key', null, ${arrayOf((name) => `d.${name}`)}, ${arrayOf((name) => `d.${name}`)}, null
    from key_default d where d.owner_id = $1 or d.owner_id in (select id from own_team)
    order by d.owner_id = $1 limit 1
  )`;
