// Fills a migrated database with records of 13 months for the list of requests. Half of the records belong to
// organization 0, which has 20 keys and 4 teams. The others belong to 999 more organizations (or another number that is
// given), of which the first is the busiest. Rare values are a model and an upstream (one record in a million), and a
// model that was used only in the first month.

import type { Lane } from "../src/stores/postgres/database.ts";
import { monthsOf } from "./scale-fill.ts";

export const months = 13;
const chunk = 250_000;

/** The first digits of the IDs of each kind. The IDs are predictable, so that other code can compute them. */
export const idFor = { organization: "0a", key: "0b", team: "0c" } as const;
/** The ID of the n-th object of a kind, as an SQL expression. `n` is an SQL expression, too. */
export const uuidFor = (kind: keyof typeof idFor, n: string) =>
  `('000000${idFor[kind]}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;

export async function fillRequests(lane: Lane, records: number, organizations = 1_000): Promise<void> {
  await lane.query(
    `insert into organization (id, slug, name, plan, anchor_at)
    select ${uuidFor("organization", "n")}, 'org-' || n, 'Bench', null, '2025-01-01Z' from generate_series(0, $1::integer - 1) n`,
    [organizations],
  );
  const spans = await monthsOf(lane, months);
  const length_ms = spans.at(-1)!.ends.getTime() - spans[0]!.starts.getTime();
  const restoring = await withoutRollUpKey(lane, "usage_hour");
  await lane.query("alter table usage_hour set unlogged");
  let done = 0;
  for (const { starts, ends, name } of spans) {
    const [has] = await lane.query<{ is: boolean }>("select to_regclass($1) is not null as is", [name]);
    if (!has!.is) await lane.query(`create unlogged table ${name} (like usage_record including all excluding indexes)`);
    const count = Math.round((records * (ends.getTime() - starts.getTime())) / length_ms);
    const step_us = ((ends.getTime() - starts.getTime()) * 1000) / count;
    for (let from = 0; from < count; from += chunk) {
      await lane.query(recordsOf(name), [
        from,
        Math.min(count, from + chunk) - 1,
        starts,
        step_us,
        done,
        organizations,
      ]);
    }
    if (!has!.is) await lane.query("select usage_attach($1)", [name]);
    await lane.query(hoursOf(name));
    done += count;
    console.error(`${name}: ${count}, ${done} in all`);
  }
  for (const text of restoring) await lane.query(text);
  await lane.query("update usage_audit set read_until = pg_snapshot_xmin(pg_current_snapshot())::text::bigint");
  await lane.query("vacuum (analyze, freeze) usage_record");
  await lane.query("vacuum (analyze, freeze) usage_hour");
}

/**
 * Drops the primary key of a roll-up table, and the Postgres rule that depends on it, which adds inserted rows to
 * existing ones. Inserting millions of rows takes several times as long with these two. Returns the statements that
 * restore them.
 */
export async function withoutRollUpKey(lane: Lane, table: "usage_hour" | "usage_day"): Promise<string[]> {
  const [made] = await lane.query<{ rule: string }>(
    "select pg_get_ruledef(oid) as rule from pg_rewrite where rulename = $1",
    [`${table}_added`],
  );
  await lane.query(`drop rule ${table}_added on ${table}_added`);
  await lane.query(`alter table ${table} drop constraint ${table}_pkey`);
  const key = "primary key (organization_id, starts_at, key_id, team_id, model, operation, outcome)";
  return [`alter table ${table} add constraint ${table}_pkey ${key}`, made!.rule];
}

/**
 * Inserts the hourly roll-ups of a partition in chronological order, as in normal operation. The list of requests and
 * the reports use the roll-ups to find records.
 */
const hoursOf = (partition: string) => `
  insert into usage_hour
  select date_bin('1 hour', r.admitted_at, '2000-01-01Z'), r.organization_id, r.key_id,
    coalesce(r.team_id, '00000000-0000-0000-0000-000000000000'), r.model, r.operation, r.outcome, count(*), count(*),
    usage_sum(r.input_tokens), 0, 0, usage_sum(r.output_tokens), 0, usage_sum(r.charged), 0, 0
  from ${partition} r group by 1, 2, 3, 4, 5, 6, 7 order by 1`;

/**
 * The parameters of the statement. $1 and $2: the first and the last record's number within the month; $3: the month's
 * start; $4: microseconds between two records; $5: the number of records in earlier months; $6: the number of
 * organizations.
 */
const recordsOf = (partition: string) => `
  insert into ${partition} (
    request_id, organization_id, key_id, team_id, operation, model, stream, price_input, price_cached_input,
    price_cache_write, price_output, source, held, charged, uncharged, admitted_at, ended_at, outcome, recovered,
    input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, usage_source,
    session_starts_at, session_ends_at, session_used_before, session_used_after,
    week_starts_at, week_ends_at, week_used_before, week_used_after,
    month_starts_at, month_ends_at, month_used_before, month_used_after, upstream, attempts, first_part_ms, xact)
  select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7000' || lpad(to_hex((8::bigint << 60) | i), 16, '0'))::uuid,
    ${uuidFor("organization", "o")}, ${uuidFor("key", "o * 100 + k")},
    case when o = 0 then ${uuidFor("team", "k % 4")} end, 'chat.completions',
    case when i % 1000003 = 1 then 'acme/rare' when i < 1000000 and i % 10 = 3 then 'acme/retired' else 'acme/writer-' || i % 5 end,
    true, 1, 1, 2, 10, 'plan', 5000, 100 + i % 2000, 0, at, at + interval '3 seconds',
    case when i % 97 = 5 then 'failed' when i % 53 = 7 then 'cancelled' else 'completed' end, false,
    90 + i % 500, 0, 0, 10 + i % 200, 0, 'reported',
    at, at + interval '5 hours', 0, 100, at, at + interval '168 hours', 0, 100, at, at + interval '1 month', 0, 100,
    case when i % 1000033 = 3 then 'spare' when i % 10 = 1 then 'second' else 'main' end, 1, 250, 3
  from (
    select i, $3::timestamptz + (i - $5::bigint) * $4::float8 * interval '1 microsecond' as at,
      case when i % 2 = 0 then 0 else (($6::bigint - 2) * power((i * 7919 % 99991) / 99991.0, 3))::integer + 1 end as o, (i / 2 * 31 % 20)::integer as k
    from generate_series($1::bigint + $5::bigint, $2::bigint + $5::bigint) i
  ) one`;
