/**
 * Finds the spans of time in which an organization has records that may match a query, from the roll-ups and from the
 * records that are in no roll-up yet.
 */

import type { RequestQuery } from "../../admin/store/request-list.ts";
import { bare } from "../../core/store/ids.ts";
import type { Querying } from "./database.ts";
import { isOfPerson } from "./person-of-key.ts";
import { common, joinedSpans, type Span, uuidAt } from "./request-spans.ts";
import { uuidIfAny } from "./rows.ts";

const hour_ms = 3_600_000;
/**
 * How far the time in an id may be from the hour of its roll-up. A roll-up counts a request in the hour of its
 * admission, by the store's clock; the id was made at its arrival, by the node's clock, which may be off.
 */
const slack_ms = hour_ms;
const hours_max = 48;

/**
 * Finds the spans to read. At most `rows_max` roll-ups are read. `reached`: down to this id, the spans contain all
 * matching records.
 */
export async function hourSpans(
  db: Querying,
  query: RequestQuery,
  span: Span,
  rows_max: number,
): Promise<{ spans: Span[]; reached: string }> {
  const { organizationId, keyId, teamId, model, operation, outcome, personId } = query;
  if (organizationId === undefined) return { spans: [span], reached: span.since };
  const rows = await db.query<{ starts_at: Date; is_whole: boolean }>(listing, [
    bare(organizationId, "org_"),
    uuidIfAny(keyId, "key_"),
    uuidIfAny(teamId, "team_"),
    model ?? null,
    outcome ?? null,
    timeOf(span.since) - hour_ms - slack_ms,
    span.until === null ? null : timeOf(span.until) + slack_ms,
    hours_max,
    rows_max,
    uuidIfAny(personId, "per_"),
    operation ?? null,
  ]);
  const around = rows.map(({ starts_at }) => {
    const start_ms = starts_at.getTime();
    return { since: uuidAt(start_ms - slack_ms), until: uuidAt(start_ms + hour_ms + slack_ms) };
  });
  const spans = joinedSpans(around).flatMap((one) => common(one, span) ?? []);
  const isWhole = rows.length < hours_max && (rows[0]?.is_whole ?? true);
  return { spans, reached: isWhole ? span.since : (spans.at(-1)?.since ?? span.since) };
}

function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

const isInTime = `h.organization_id = $1::uuid and h.starts_at >= to_timestamp($6::bigint / 1000.0)
    and h.starts_at < coalesce(to_timestamp($7::bigint / 1000.0), 'infinity')`;
const matches = `($2::uuid is null or h.key_id = $2) and ($3::uuid is null or h.team_id = $3)
    and ($4::text is null or h.model = $4) and ($5::text is null or h.outcome = $5) and h.operation <> 'adjustment'
    and ${isOfPerson("h", "$10")} and ($11::text is null or h.operation = $11)`;

const reading = `
    select h.starts_at, ${matches} as matches from usage_hour h where ${isInTime}`;

/**
 * SQL that reads roll-ups until enough hours match. If the limit of rows is reached first, the hour of the last row
 * counts as matching, and the next page begins there.
 */
const listing = `
  with rolled as materialized (
    select distinct r.starts_at from (${reading} order by h.starts_at desc limit $9) r
    where r.matches order by r.starts_at desc limit $8
  ), bottom as materialized (
    select min(r.starts_at) as starts_at from (
      ${reading} and (select count(*) from rolled) < $8 order by h.starts_at desc limit $9
    ) r having count(*) = $9
  ), hours as (
    select starts_at from rolled
    union
    select starts_at from bottom
    union
    select h.starts_at
    from usage_audit a cross join lateral usage_recorded_hours(a.read_until, 9223372036854775807, '-infinity', 'infinity') h
    where ${isInTime} and ${matches} and h.starts_at >= coalesce((select starts_at from bottom), '-infinity')
  )
  select starts_at, not exists (select from bottom) as is_whole from hours order by starts_at desc limit $8`;
