/** Reads how much organizations, teams, people and keys have used of their limits, through SQL functions. */
import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { LimitedBy } from "../../core/store/budget.ts";
import { bare, idOf } from "../../core/store/ids.ts";
import { type SubjectReading, type WindowKind, windowKinds } from "../../core/store/ledger.ts";
import {
  modelLimitsPrefix,
  type NearLimit,
  nearShares,
  type Standing,
  type StandingSubject,
  type Standings,
  standingSubjects,
} from "../../features/telemetry/store/standing.ts";
import type { Querying } from "./database.ts";

const limitColumns = ["session_nanos", "week_nanos", "month_nanos", "concurrent_requests"];

/** SQL for the limits of the rows of `table`, increased by their raises (temporary increases) in force, `r`. */
const raisedLimits = (table: string) =>
  limitColumns.map((column) => `usage_raised(${table}.${column}, r.${column}) as ${column}`).join(", ");
const hasLimit = (table: string) =>
  `coalesce(${limitColumns.map((column) => `${table}.${column}`).join(", ")}) is not null`;
const raiseOf = (id: string) =>
  `left join limit_value r on r.counted_id = ${id} and r.kind = 'raise' and r.until > (select store_now())`;

/**
 * SQL for the teams, people, keys and limits for models that have a limit which the ledger counts. `owner_id`: the
 * subject itself; for limits for models, the subject that has them.
 */
const limited = `
  select s.subject_id, s.organization_id, coalesce(s.parent_id, s.subject_id) as owner_id, s.models, ${raisedLimits("s")}
  from usage_subject s ${raiseOf("s.subject_id")} where ${hasLimit("s")}`;

/** SQL for organizations that have a limit, their own or their plan's. */
const organizations = `
  select o.id as subject_id, o.id as organization_id, o.id as owner_id, null::text as models, ${raisedLimits("l")}
  from organization o left join plan p on p.name = o.plan
  cross join lateral (
    select ${limitColumns.map((column, place) => `usage_own(p.${column}, o.own_limits[${place + 1}], null) as ${column}`).join(", ")}
  ) l ${raiseOf("o.id")} where ${hasLimit("l")}`;

/**
 * SQL for a window's limit in force. If a change of the calendar has shortened the window, its limit is reduced in
 * proportion.
 */
const inProportion = (limit: string, place: number) =>
  `usage_in_proportion(${limit}, f.starts_at[${place}], f.ends_at[${place}], f.wholes[${place}])`;

/**
 * SQL for the standings of subjects: how much each has used of its limits. `condition` selects the subjects, and may
 * use `s.subject_id`. `percent`: the used share of the tightest limit; null if no window is limited. The windows of an
 * organization are computed once for all of its subjects.
 */
const standingRows = (subjects: string, condition: string): string => `
  with s as materialized (select * from (${subjects}) s where ${condition}),
  f as materialized (
    select o.organization_id, w.starts_at, w.ends_at, x.wholes, clock.at
    from (select distinct organization_id from s) o
    cross join (select store_now() as at offset 0) clock
    cross join lateral (select * from usage_windows_at(o.organization_id, clock.at) offset 0) w
    left join organization b on b.id = o.organization_id and b.bridged_until > clock.at
    left join lateral (select usage_wholes(b.id, w.starts_at, w.ends_at) as wholes offset 0) x on true
  )
  select s.*, l.limits, t.running, f.starts_at, f.ends_at, f.wholes, t.used, t.held, f.at,
    greatest(t.used[1] * 100.0 / l.limits[1], t.used[2] * 100.0 / l.limits[2], t.used[3] * 100.0 / l.limits[3]) as percent
  from s join f on f.organization_id = s.organization_id
  cross join lateral (
    select array[s.session_nanos, ${inProportion("s.week_nanos", 2)}, ${inProportion("s.month_nanos", 3)}] as limits offset 0
  ) l
  cross join lateral (select * from usage_totals(s.subject_id, f.starts_at) offset 0) t`;

/**
 * SQL for each subject with its own limits, and again for each of its limits for models. An organization's plan counts
 * only in the row with its own limits.
 */
const subjectsOf: Record<StandingSubject, string> = {
  organization: `select u.*, 'organization' as subject, o.slug as name, case when u.models is null then o.plan end as plan,
      null::uuid as person_id
    from (${organizations} union all ${limited} and s.parent_id is not null) u join organization o on o.id = u.owner_id`,
  team: `select u.*, 'team' as subject, m.name, null as plan, null::uuid as person_id
    from (${limited}) u join team m on m.id = u.owner_id`,
  person: `select u.*, 'person' as subject, coalesce(p.name, p.email) as name, null as plan, p.id as person_id
    from (${limited}) u join usage_subject s on s.subject_id = u.owner_id join person p on p.id = s.person_id`,
  key: `select u.*, 'key' as subject, k.name, null as plan, null::uuid as person_id
    from (${limited}) u join api_key k on k.id = u.owner_id`,
};

/** Like `subjectsOf`, but without keys that have ended, whose number only grows. */
const livingSubjectsOf = {
  ...subjectsOf,
  key: `${subjectsOf.key} where k.revoked_at is null and (k.expires_at is null or k.expires_at > (select store_now()))`,
};
const allSubjects = Object.values(livingSubjectsOf).join(" union all ");

/** SQL for the standings of all subjects of organizations that have a destination of notices, with the subject's kind and name. */
export const standingsWithDestination = standingRows(
  allSubjects,
  "s.organization_id in (select d.organization_id from notice_destination d)",
);

interface StandingRow {
  subject_id: string;
  organization_id: string;
  /**
   * The subject that has these limits: the subject itself, or, if the limits are for models, the key, person, team or
   * organization that has them.
   */
  owner_id: string;
  models: string | null;
  /** The limits of the three windows. */
  limits: (number | null)[];
  concurrent_requests: number | null;
  running: number;
  starts_at: Date[];
  ends_at: Date[];
  wholes: (Date | null)[] | null;
  used: number[];
  held: number[];
  at: Date;
}

export function standings(db: Querying): Standings {
  return {
    async standings(ids) {
      const named = new Map(ids.map((id) => [uuidOfSubject(id), id]));
      if (named.size === 0) return new Map();
      const rows = await db.query<StandingRow>(ofIds, [[...named.keys()]]);
      return new Map(
        rows.map((row) => {
          const id = named.get(row.subject_id)!;
          return [id, standingOf(row, id)];
        }),
      );
    },
    async nearest(subject, limit) {
      const rows = await db.query<StandingRow>(nearestOf[subject], [limit]);
      return rows.map((row) => standingOf(row, idOf(row.owner_id, standingSubjects[subject])));
    },
    nearLimits: () => db.query<NearLimit>(counting),
  };
}

/**
 * Reads the standings of a key, its person and its team, if they have limits, and the standings of the limits for
 * models that apply to the key.
 */
export async function budgetsNow(db: Querying, organizationId: string, keyId: string): Promise<SubjectReading[]> {
  const rows = await db.query<StandingRow & { subject: LimitedBy }>(ofKey, [
    bare(organizationId, "org_"),
    bare(keyId, "key_"),
  ]);
  return rows.map((row) => ({ subject: row.subject, ...modelsOf(row), ...readingOf(row) }));
}

/**
 * SQL that is true for ids whose subject has used at least this percentage of one of its limits. `organization` limits
 * the search to one organization.
 */
export function hasUsed(subject: StandingSubject, id: SQLWrapper, percent: number, organization?: string): SQL {
  const whose = "s.organization_id = coalesce(<id>, s.organization_id)";
  const [before = "", after = ""] = standingRows(subjectsOf[subject], whose).split("<id>");
  const rows = sql`${sql.raw(before)}${organization ?? null}::uuid${sql.raw(after)}`;
  return sql`${id} in (select u.owner_id from (${rows}) u where u.percent >= ${percent}::integer)`;
}

const ofIds = standingRows(`${organizations} union all ${limited}`, "s.subject_id = any($1::uuid[])");

/** SQL for the subjects whose limits apply to a key, with each of their limits for models. */
const countingFor = `
  select l.place, l.subject, c.id
  from (select $2::uuid as key) k left join usage_subject s on s.subject_id = k.key
  cross join lateral (
    values (1, 'key', k.key), (2, 'person', s.member_id), (3, 'team', s.team_id), (4, 'organization', $1::uuid)
  ) l (place, subject, id)
  cross join lateral (
    select l.id union all select m.subject_id from usage_subject m where m.parent_id = l.id
  ) c`;

const ofKey = `${standingRows(
  `select u.*, i.subject, i.place from (${limited}) u join (${countingFor}) i on i.id = u.subject_id`,
  "s.organization_id = $1::uuid",
)} order by s.place, s.models nulls first`;

const nearestOf = Object.fromEntries(
  Object.entries(livingSubjectsOf).map(([subject, rows]) => [
    subject,
    `select * from (${standingRows(rows, "true")}) s where percent is not null
     order by percent desc, subject_id limit $1`,
  ]),
) as Record<StandingSubject, string>;

const counting = `
  select k.subject, p.percent, count(distinct s.owner_id) as count
  from unnest(array['${Object.keys(subjectsOf).join("', '")}']) k (subject)
  cross join unnest(array[${nearShares.join(", ")}]) p (percent)
  left join (${standingRows(allSubjects, "true")}) s on s.subject = k.subject and s.percent >= p.percent
  group by 1, 2 order by 1, 2`;

export function uuidOfSubject(id: string): string {
  const prefix = [...Object.values(standingSubjects), modelLimitsPrefix].find((one) => id.startsWith(one));
  if (!prefix) throw new TypeError(`not the id of a subject of the ledger: ${JSON.stringify(id.slice(0, 64))}`);
  return bare(id, prefix);
}

function standingOf(row: StandingRow, id: string): Standing {
  return { id, organizationId: idOf(row.organization_id, "org_"), ...modelsOf(row), ...readingOf(row), at: row.at };
}

const modelsOf = ({ models }: StandingRow) => (models === null ? {} : { models });

function readingOf(row: StandingRow): Pick<Standing, "windows" | "concurrentRequests" | "running"> {
  const reading = (kind: WindowKind) => {
    const place = windowKinds.indexOf(kind);
    return {
      kind,
      limit: row.limits[place]!,
      used: row.used[place]!,
      held: row.held[place]!,
      startsAt: row.starts_at[place]!,
      resetAt: row.ends_at[place]!,
      ...(row.wholes?.[place] && { isShort: true as const }),
    };
  };
  return {
    windows: { session: reading("session"), week: reading("week"), month: reading("month") },
    concurrentRequests: row.concurrent_requests,
    running: row.running,
  };
}
