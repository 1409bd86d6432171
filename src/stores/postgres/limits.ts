/** Changes of limits over SQL (docs/design/usage.md, Limits that change). */
import type { ChangedLimits, LimitStore } from "../../core/store/plan.ts";
import type { Database } from "./database.ts";
import { plans } from "./plans.ts";

/** If more subjects than this have changed, the result names none of them. */
const named_max = 1_000;

export function limits(db: Database): LimitStore {
  return {
    inForce: plans(db).inForce,
    async changes(since, from = null) {
      const [row] = await db.query<ChangedLimits & { subjects: string[] }>(behind, [since, from]);
      const { number, at, nextEnd_ms, subjects } = row!;
      // A lower number than before means that the database is another one, or was restored to an earlier state.
      const isUnknown = subjects.length > named_max || (since !== null && number < since);
      return { number, at, nextEnd_ms, subjects: isUnknown ? null : subjects };
    },
    listen: (changed) => db.listen("limits_changed", changed, changed),
  };
}

/**
 * One statement reads the number of the last change and the names of the changed subjects, so that no change happens in
 * between. Each name is looked up by itself, because every node runs this for every change, and most changes are of one
 * subject among many.
 */
const behind = `
  select h.number, clock.at,
    (select ceil(extract(epoch from min(r.until) - clock.at) * 1000)::double precision
      from limit_value r where r.kind = 'raise' and r.until > clock.at) as "nextEnd_ms",
    array(
      select case when t.id is not null then 'team_' when o.id is not null then 'org_' when s.person_id is not null then 'per_'
          else 'key_' end
        || replace(coalesce(s.person_id, c.subject_id)::text, '-', '')
      from (
        (select c.subject_id from limit_change c where c.number > coalesce($1::bigint, h.number)
          order by c.number limit ${named_max + 1})
        union
        select r.subject_id from limit_value r where r.kind = 'raise' and r.until > $2::timestamptz and r.until <= clock.at
      ) c
      left join lateral (select x.id from team x where x.id = c.subject_id offset 0) t on true
      left join lateral (select x.id from organization x where x.id = c.subject_id offset 0) o on true
      left join lateral (
        select u.person_id from usage_subject u where u.subject_id = c.subject_id offset 0
      ) s on true
      limit ${named_max + 1}
    ) as subjects
  from limit_change_head h cross join (select store_now() as at offset 0) clock`;
