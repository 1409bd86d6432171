/** Reads a report of engines in one statement, from the records of a span that is short enough to be read whole. */
import type {
  UpstreamMeasures,
  UpstreamQuery,
  UpstreamReport,
  UpstreamReports,
} from "../../admin/store/upstream-report.ts";
import type { Database } from "./database.ts";
import { uuidAt } from "./request-spans.ts";
import { uuidIfAny } from "./rows.ts";

const statement_ms = 60_000;
/**
 * The most by which the time in a request's id (its arrival by the node's clock) may differ from the admission's time
 * (by the store's clock).
 */
const slack_ms = 3_600_000;

export function upstreamReports(db: Pick<Database, "transaction">): UpstreamReports {
  return {
    async reportUpstreams({ from, to, upstream, model, organizationId }: UpstreamQuery) {
      const [since, until] = [uuidAt(from.getTime() - slack_ms), uuidAt(to.getTime() + slack_ms)];
      const organization = uuidIfAny(organizationId, "org_");
      const values = [from, to, since, until, upstream ?? null, model ?? null, organization];
      return reportOf(await db.transaction((tx) => tx.query<Row>(statement, values), { statement_ms }));
    },
  };
}

interface Row extends UpstreamMeasures {
  of: "all" | "hour" | "upstream" | "failure" | "followed";
  at: Date;
  startsAt: Date | null;
  upstream: string | null;
  /** The code of a failure, or how an attempt ended. */
  what: string | null;
}

function reportOf(rows: readonly Row[]): UpstreamReport {
  const of = (kind: Row["of"]) => rows.filter((row) => row.of === kind);
  const [total] = of("all");
  return {
    at: total!.at,
    total: measuresOf(total!),
    hours: of("hour").map((row) => ({ startsAt: row.startsAt!, ...measuresOf(row) })),
    upstreams: of("upstream").map((row) => ({ upstream: row.upstream, ...measuresOf(row) })),
    failures: of("failure").map(({ upstream, what, requests }) => ({ upstream, code: what, requests })),
    followed: of("followed").map(({ upstream, what, requests }) => ({
      upstream: upstream!,
      outcome: what!,
      attempts: requests,
    })),
  };
}

function measuresOf({ of: _, at: _at, startsAt: _startsAt, upstream: _upstream, what: _what, ...measures }: Row) {
  return measures;
}

const within = (share: number, time: string) => `percentile_disc(${share}) within group (order by a.${time})`;

/**
 * Late settlements and entries of operators do not count as requests. In a report of a single upstream, a request
 * counts if it was sent to that upstream last, and each attempt at that upstream counts.
 */
const statement = `
  with spanned as materialized (
    select date_bin('1 hour', r.admitted_at, '2000-01-01Z') as hour, r.upstream, r.outcome, r.error_code, r.tried,
      r.first_part_ms, round(extract(epoch from r.ended_at - r.admitted_at) * 1000)::bigint as duration_ms
    from usage_record r
    where r.request_id >= $3::uuid and r.request_id < $4::uuid and r.admitted_at >= $1 and r.admitted_at < $2
      and r.operation <> 'adjustment' and ($6::text is null or r.model = $6)
      and ($7::uuid is null or r.organization_id = $7)
  ), asked as materialized (
    select s.* from spanned s where $5::text is null or s.upstream = $5
  ), measured as (
    select case when grouping(a.hour) = 0 then 'hour' when grouping(a.upstream) = 0 then 'upstream' else 'all' end as "of",
      a.hour, a.upstream, null::text as what, count(*) as requests,
      count(*) filter (where a.outcome = 'failed') as failed, count(*) filter (where a.outcome = 'cancelled') as cancelled,
      ${within(0.5, "first_part_ms")} as first_p50, ${within(0.95, "first_part_ms")} as first_p95,
      ${within(0.5, "duration_ms")} as end_p50, ${within(0.95, "duration_ms")} as end_p95
    from asked a group by grouping sets ((), (a.hour), (a.upstream))
  ), troubles as (
    select 'failure' as "of", a.upstream, a.error_code as what, count(*) as times
    from asked a where a.outcome = 'failed' group by 2, 3
    union all
    select 'followed', t.attempt ->> 'upstream', t.attempt ->> 'outcome', count(*)
    from spanned s cross join lateral jsonb_array_elements(s.tried) with ordinality t (attempt, place)
    where t.place < jsonb_array_length(s.tried) and ($5::text is null or t.attempt ->> 'upstream' = $5) group by 2, 3
  ), listed as (
    select * from measured
    union all
    select t."of", null, t.upstream, t.what, t.times, 0, 0, null, null, null, null from troubles t
  )
  select l."of", store_now() as at, l.hour as "startsAt", l.upstream, l.what, l.requests, l.failed, l.cancelled,
    l.first_p50 as "firstPartP50_ms", l.first_p95 as "firstPartP95_ms",
    l.end_p50 as "durationP50_ms", l.end_p95 as "durationP95_ms"
  from listed l
  order by l.hour, case when l."of" in ('failure', 'followed') then -l.requests end, l.upstream, l.what`;
