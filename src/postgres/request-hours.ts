/** The spans in which an organization has records that may match, by the roll-ups and by what they have not read yet. */
import { bare } from "../store/ids.ts";
import type { RequestQuery } from "../store/request-list.ts";
import type { Database } from "./database.ts";
import { common, joined, type Span, uuidAt } from "./request-spans.ts";

const hour_ms = 3_600_000;
/**
 * A roll-up counts a request in the hour of its admission, by the store's clock. Its id was made when it arrived, by the
 * clock of its node: before it waited for room, and perhaps with a clock that is off.
 */
const slack_ms = hour_ms;
const hours_max = 48;

/** `reached`: no other span of the query has a record that matches, down to this id. */
export async function hourSpans(
  db: Pick<Database, "query">,
  query: RequestQuery,
  span: Span,
): Promise<{ spans: Span[]; reached: string }> {
  const { organizationId, keyId, teamId, model, outcome } = query;
  if (organizationId === undefined) return { spans: [span], reached: span.since };
  const rows = await db.query<{ starts_at: Date }>(listing, [
    bare(organizationId, "org_"),
    keyId === undefined ? null : bare(keyId, "key_"),
    teamId === undefined ? null : bare(teamId, "team_"),
    model ?? null,
    outcome ?? null,
    timeOf(span.since) - hour_ms - slack_ms,
    span.until === null ? null : timeOf(span.until) + slack_ms,
    hours_max,
  ]);
  const around = rows.map(({ starts_at }) => {
    const start_ms = starts_at.getTime();
    return { since: uuidAt(start_ms - slack_ms), until: uuidAt(start_ms + hour_ms + slack_ms) };
  });
  const spans = joined(around).flatMap((one) => common(one, span) ?? []);
  const isWhole = rows.length < hours_max;
  return { spans, reached: isWhole ? span.since : (spans.at(-1)?.since ?? span.since) };
}

function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

const isAsked = `h.organization_id = $1::uuid and ($2::uuid is null or h.key_id = $2) and ($3::uuid is null or h.team_id = $3)
    and ($4::text is null or h.model = $4) and ($5::text is null or h.outcome = $5) and h.operation <> 'adjustment'
    and h.starts_at >= to_timestamp($6::bigint / 1000.0)
    and ($7::bigint is null or h.starts_at < to_timestamp($7::bigint / 1000.0))`;

const listing = `
  select starts_at from (
    select h.starts_at from usage_hour h where ${isAsked}
    union
    select h.starts_at
    from usage_audit a cross join lateral usage_hours(a.read_until, 9223372036854775807, '-infinity', 'infinity') h
    where ${isAsked}
  ) hours
  order by starts_at desc limit $8`;
