// Fills a migrated database with records of the past 14 months, as if they had been served at a steady rate and audited
// every hour: the records, the totals of the usage windows to which they add up, and for windows that have ended the
// rows that mark these totals as checked (seals).

import type { Lane } from "../src/stores/postgres/database.ts";

interface Filling {
  records: number;
  organizations: number;
}

/** The number of months to fill. The oldest one ended 13 months ago, so that upkeep drops it. */
export const months = 15;
const chunk = 200_000;

/** The ID of the n-th organization, as an SQL expression. Other code can compute the same ID. */
export const organizationOf = "md5('organization ' || n)::uuid";

/** The last `count` months until now, each with the name of the table of its records. */
export function monthsOf(lane: Lane, count: number) {
  return lane.query<{ starts: Date; ends: Date; name: string }>(
    `select starts at time zone 'UTC' as starts,
       least(starts + interval '1 month', date_trunc('minute', now() at time zone 'UTC')) at time zone 'UTC' as ends,
       'usage_record_' || to_char(starts, 'YYYY_MM') as name
     from generate_series(date_trunc('month', now() at time zone 'UTC') - make_interval(months => $1 - 1),
       now() at time zone 'UTC', interval '1 month') starts`,
    [count],
  );
}

export async function fill(lane: Lane, { records, organizations }: Filling): Promise<void> {
  await lane.query(
    `insert into organization (id, slug, name, plan, anchor_at)
     select ${organizationOf}, 'org-' || n, 'Bench', 'scale', '2025-01-01Z' from generate_series(0, $1 - 1) n`,
    [organizations],
  );
  const spans = await monthsOf(lane, months);
  const length_ms = spans.at(-1)!.ends.getTime() - spans[0]!.starts.getTime();
  let done = 0;
  for (const { starts, ends, name } of spans) {
    await lane.query("select usage_partition(usage_record_id($1))", [starts]);
    if (records === 0) continue;
    const count = Math.round((records * (ends.getTime() - starts.getTime())) / length_ms);
    const step_us = ((ends.getTime() - starts.getTime()) * 1000) / count;
    for (let from = 0; from < count; from += chunk) {
      const until = Math.min(count, from + chunk) - 1;
      await lane.query(recordsOf(name), [from, until, starts, step_us, organizations, done]);
      console.error(`${name}: ${until + 1} of ${count}`);
    }
    await lane.query(windowsOf(name));
    done += count;
  }
  for (const text of settled) await lane.query(text);
}

/**
 * The parameters of the statement. $1 and $2: the first and the last record's number within the month; $3: the month's
 * start; $4: microseconds between two records; $5: the number of organizations; $6: the number of records in earlier
 * months.
 */
const recordsOf = (partition: string) => `
  insert into ${partition} (
    request_id, organization_id, key_id, operation, model, stream, price_input, price_cached_input, price_cache_write,
    price_output, source, held, charged, uncharged, admitted_at, ended_at, outcome, recovered,
    input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, usage_source,
    session_starts_at, session_ends_at, session_used_before, session_used_after,
    week_starts_at, week_ends_at, week_used_before, week_used_after,
    month_starts_at, month_ends_at, month_used_before, month_used_after, upstream, attempts, first_part_ms, xact)
  select (lpad(to_hex((extract(epoch from t.at) * 1000)::bigint), 12, '0') || '7' || left(r.hex, 3) || '8'
      || substr(r.hex, 4, 15))::uuid,
    md5('organization ' || (i * 7919) % $5::bigint)::uuid, '00000000-0000-7000-8000-000000000001', 'chat.completions',
    'acme/writer-' || i % 5, true, 1, 1, 2, 10, 'plan', 5000, 100 + i % 2000, 0, t.at, t.at + interval '3 seconds',
    'completed', false, 90 + i % 500, 0, 0, 10 + i % 200, 0, 'reported',
    t.session, t.session + interval '5 hours', 0, 100, t.week, t.week + interval '168 hours', 0, 100,
    t.month, t.month + interval '1 month', 0, 100, 'main', 1, 250, 3
  from generate_series($1::bigint, $2::bigint) i
  cross join lateral (
    select at, date_bin('5 hours', at, '2025-01-01Z') as session, date_bin('168 hours', at, '2025-01-01Z') as week,
      date_trunc('month', at at time zone 'UTC') at time zone 'UTC' as month
    from (select $3::timestamptz + i * $4::float8 * interval '1 microsecond') one (at) offset 0
  ) t
  cross join lateral (select md5('request ' || i + $6::bigint) as hex) r`;

const windowsOf = (partition: string) => `
  insert into usage_past as p
  select r.organization_id, w.kind, w.starts_at, max(w.ends_at), sum(r.charged), 0
  from ${partition} r
  cross join lateral (values
    ('session'::usage_window_kind, r.session_starts_at, r.session_ends_at), ('week', r.week_starts_at, r.week_ends_at),
    ('month', r.month_starts_at, r.month_ends_at)
  ) w (kind, starts_at, ends_at)
  group by 1, 2, 3
  on conflict (subject_id, kind, starts_at) do update set used = p.used + excluded.used`;

/**
 * The statements that create the state after an hourly audit. A window that has ended has a seal, which marks its total
 * as checked; any other window has a tally, the sum of its records so far. The planner's statistics are updated.
 */
const settled = [
  `insert into usage_seal select subject_id, kind, starts_at, ends_at, used, 1, now() from usage_past where ends_at <= now()`,
  `insert into usage_tally select subject_id, kind, starts_at, ends_at, used, 1 from usage_past where ends_at > now()`,
  "update usage_audit set read_until = pg_snapshot_xmin(pg_current_snapshot())::text::bigint",
  "vacuum (analyze, freeze) usage_record",
  "vacuum (analyze) usage_past",
  "vacuum (analyze) usage_seal",
  "vacuum (analyze) usage_tally",
  "vacuum (analyze) organization",
];
