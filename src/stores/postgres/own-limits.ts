/**
 * Enforces that no act of a person raises a limit that applies to that person (docs/access.md, Limits of one's own).
 * The rule is enforced here, around every transaction, so that no verb can forget it.
 */

import { type CountingLimits, isAnyRaised, type OwnLimits } from "../../admin/store/own-limits.ts";
import { bare, uuidOf } from "../../core/store/ids.ts";
import type { Database, Querying } from "./database.ts";

/**
 * Returns the database for the acts of the person in `own`. `other`: the id of another person whose row the acts lock.
 */
export function heldToOwnLimits(db: Database, own: OwnLimits | null, other: string | null = null): Database {
  if (own === null) return db;
  const [person, organization] = [bare(own.personId, "per_"), bare(own.organizationId, "org_")];
  const people = [person, other === null ? null : uuidOf(other, "per_")].filter((one) => one !== null);
  return {
    ...db,
    transaction(work, options) {
      // Only the transaction that sums earlier use has options. It takes long and changes no limit, so it takes no
      // locks for which others would wait.
      if (options) return db.transaction(work, options);
      return db.transaction(async (tx) => {
        // Everything that changes limits locks the organization too, so nobody else changes them before this act does.
        // The rows of people are locked first, as in a sign-in, and in one order, so that no deadlock is possible.
        await tx.query("select id from person where id = any ($1::uuid[]) order by id for no key update", [people]);
        await tx.query("select id from organization where id = $1 for update", [organization]);
        const before = await countingFor(tx, organization, person);
        const answer = await work(tx);
        if (isAnyRaised(before, await countingFor(tx, organization, person))) own.refuse();
        return answer;
      });
    },
  };
}

/** All limits that apply to a person in an organization, with those of each key that was not itself revoked. */
function countingFor(tx: Querying, organization: string, person: string): Promise<CountingLimits[]> {
  return tx.query<CountingLimits>(counting, [organization, person]);
}

const names = [
  "session_nanos",
  "week_nanos",
  "month_nanos",
  "concurrent_requests",
  "requests_per_minute",
  "tokens_per_minute",
];
const arrayOf = (limits: (name: string) => string) => `array[${names.map(limits).join(", ")}]`;

/**
 * SQL for the limits that apply to a person. Those that a future key would have are compared without raises (temporary
 * increases), since a new key has none.
 */
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
  select c.entrance, c.place, c.team, l.models, l.limits,
    array(select usage_raised(o.base, o.raise) from unnest(l.limits, limit_array(r)) with ordinality o (base, raise, n)
      order by o.n) as raised, r.until as "raisedUntil"
  from counted c
  cross join lateral (
    select '' as models, ${arrayOf((name) => `s.${name}`)} as limits
    from (select 1) one left join usage_subject s on s.subject_id = c.subject
    union all
    select v.models, ${arrayOf((name) => `nullif(v.${name}, 0)`)} from limit_value v
    where v.subject_id = c.subject and v.kind = 'own' and v.models <> ''
  ) l
  left join lateral usage_raise_of(limit_counted(c.subject, l.models), store_now()) r on true
  union all
  select 'new', 'key', null, '', n.limits, n.limits, null
  from (select 1) one
  left join limit_value t on t.subject_id in (select id from own_team) and t.kind = 'keys'
  left join limit_value o on o.subject_id = $1 and o.kind = 'keys'
  cross join lateral limit_chosen(null, limit_array(t), limit_array(o)) n`;
