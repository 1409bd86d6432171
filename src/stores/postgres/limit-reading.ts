/** Reads the limits of subjects, and for each limit in force the subject that sets it (docs/limits.md). */

import { budgetNames, noBudget } from "../../admin/store/budget.ts";
import type { LimitOrigin, LimitSubject, LimitValues, Raise, SubjectLimits } from "../../admin/store/limits.ts";
import type { Budget } from "../../core/store/budget.ts";
import { bare, type IdPrefix, idOf, uuidOf } from "../../core/store/ids.ts";
import { not_limited } from "../../core/store/rates.ts";
import { modelLimitsPrefix, type StandingSubject, standingSubjects } from "../../features/telemetry/store/standing.ts";
import type { Querying } from "./database.ts";

/** The prefixes of the ids by which clients know subjects. The ledger's subject for a person has another prefix. */
export const idPrefixes: Record<StandingSubject, IdPrefix> = { ...standingSubjects, person: "per_" };

export const uuidOfLimitSubject = ({ subject, id }: LimitSubject): string | null => uuidOf(id, idPrefixes[subject]);

interface ValueRow {
  subject_id: string;
  counted_id: string;
  kind: "own" | "keys" | "members" | "raise";
  models: string;
  limits: (number | null)[];
  until: Date | null;
  set_at: Date;
  set_by: string;
}

interface SubjectRow {
  id: string;
  counted_id: string;
  name: string | null;
  version: number;
  limits: (number | null)[] | null;
  origins: (LimitOrigin | null)[] | null;
}

/** The limits of an array that has them in the order of `limit_array`; null: none is set. */
export function budgetFrom(limits: readonly (number | null)[] | null): Budget {
  return Object.fromEntries(budgetNames.map((name, place) => [name, limits?.[place] ?? null])) as unknown as Budget;
}

/** SQL for the current subjects of the organization `$1`, by the kind of subject. */
const listedSubjects: Record<StandingSubject, string> = {
  organization: "select o.id, o.id as counted_id, o.slug as name, o.version from organization o where o.id = $1",
  team: `select t.id, t.id as counted_id, t.name, t.version from team t
    where t.organization_id = $1 and t.removed_at is null`,
  person: `select p.id, usage_member($1, p.id) as counted_id, coalesce(p.name, p.email) as name, p.version from person p
    where p.id in (select m.person_id from membership m where m.organization_id = $1 and m.ended_at is null)
      or p.id in (select s.person_id from usage_subject s where s.organization_id = $1)`,
  key: `select k.id, k.id as counted_id, k.name, k.version from api_key k
    where k.organization_id = $1 and k.revoked_at is null and k.kind = 'key'`,
};

/** SQL for any subject by its id, also a key that lists leave out and a person without a membership. */
const namedSubjects: Record<StandingSubject, string> = {
  ...listedSubjects,
  person: `select p.id, usage_member($1, p.id) as counted_id, coalesce(p.name, p.email) as name, p.version from person p
    where true`,
  key: "select k.id, k.id as counted_id, k.name, k.version from api_key k where k.organization_id = $1",
};

const inForce = (subject: StandingSubject) =>
  subject === "organization"
    ? `(select array_agg(usage_own(l.plan, l.own, null) order by l.n) as limits,
         array_agg(case when l.own is not null then 'own' when l.plan is not null then 'plan' end order by l.n) as origins
       from organization o left join plan p on p.name = o.plan
       cross join lateral unnest(o.own_limits, array[p.session_nanos, p.week_nanos, p.month_nanos, p.concurrent_requests,
         p.requests_per_minute, p.tokens_per_minute]) with ordinality l (own, plan, n) where o.id = s.counted_id)`
    : "(select f.limits, f.origins from limits_in_force($1, s.counted_id) f)";

const selected = (subjects: string, subject: StandingSubject) =>
  `select s.*, f.limits, f.origins from (${subjects}) s left join lateral ${inForce(subject)} f on true order by s.id`;

/** Reads the limits of one subject. Null if the organization has no such subject. */
export async function readLimits(db: Querying, subject: LimitSubject): Promise<SubjectLimits | null> {
  const id = uuidOfLimitSubject(subject);
  if (id === null) return null;
  const one = selected(`select * from (${namedSubjects[subject.subject]}) s where s.id = $2`, subject.subject);
  const rows = await db.query<SubjectRow>(one, [bare(subject.organizationId, "org_"), id]);
  return (await limitsFrom(db, subject, rows))[0] ?? null;
}

/** Reads at most `limit` subjects of one kind, in the order of their ids. */
export async function readPage(
  db: Querying,
  { subject, organizationId }: Pick<LimitSubject, "subject" | "organizationId">,
  { after, limit }: { after?: string | undefined; limit: number },
): Promise<SubjectLimits[]> {
  const last = after === undefined ? null : uuidOf(after, idPrefixes[subject]);
  const page = `select * from (${listedSubjects[subject]}) s where ($2::uuid is null or s.id > $2) order by s.id limit $3`;
  const rows = await db.query<SubjectRow>(selected(page, subject), [bare(organizationId, "org_"), last, limit]);
  return limitsFrom(db, { subject, organizationId }, rows);
}

async function limitsFrom(
  db: Querying,
  { subject, organizationId }: Pick<LimitSubject, "subject" | "organizationId">,
  rows: readonly SubjectRow[],
): Promise<SubjectLimits[]> {
  if (rows.length === 0) return [];
  const values = await db.query<ValueRow>(
    `select v.subject_id, v.counted_id, v.kind, v.models, limit_array(v) as limits, v.until, v.set_at, v.set_by from limit_value v
     where v.subject_id = any ($1::uuid[]) and (v.until is null or v.until > store_now()) order by v.models`,
    [rows.map(({ counted_id }) => counted_id)],
  );
  const bySubject = Map.groupBy(values, ({ subject_id }) => subject_id);
  return rows.map((row) => ({
    subject,
    organizationId,
    id: idOf(row.id, idPrefixes[subject]),
    countedId: idOf(row.counted_id, standingSubjects[subject]),
    name: row.name,
    version: row.version,
    inForce: budgetFrom(row.limits),
    origins: Object.fromEntries(
      budgetNames.map((name, place) => [name, row.origins?.[place] ?? null]),
    ) as unknown as SubjectLimits["origins"],
    ...valuesOf(bySubject.get(row.counted_id) ?? []),
  }));
}

function valuesOf(rows: readonly ValueRow[]): LimitValues & Pick<SubjectLimits, "countedModels"> {
  const of = (kind: ValueRow["kind"]) =>
    budgetFrom(rows.find((row) => row.kind === kind && row.models === "")?.limits ?? null);
  const own = rows.filter(({ kind, models }) => kind === "own" && models !== "");
  const raises = rows.filter(({ kind }) => kind === "raise");
  return {
    own: of("own"),
    keys: of("keys"),
    members: of("members"),
    models: new Map(own.map(({ models, limits }) => [models, budgetFrom(limits)])),
    countedModels: new Map(own.map(({ models, counted_id }) => [models, idOf(counted_id, modelLimitsPrefix)])),
    raises: raises.map(
      ({ models, limits, until, set_at, set_by }): Raise => ({
        models,
        limits: budgetFrom(limits),
        until: until!,
        setAt: set_at,
        setBy: set_by,
      }),
    ),
  };
}

/** Returns the limits, with null for those that are switched off. */
export function limitedBy(value: Budget): Budget {
  const limits = budgetNames.map((name) => [name, value[name] === not_limited ? null : value[name]]);
  return { ...noBudget, ...Object.fromEntries(limits) };
}
