-- Roll-ups: the sums of records by the hour and by the day (UTC) in which their requests were admitted. When the audit
-- reads new records, it adds each record once, over exactly the transactions that it reads (docs/design/metering.md,
-- Roll-ups). Totals: sums of the roll-ups of days over longer spans and fewer columns, for reports that need less detail. A
-- report of ten thousand organizations then reads a row for each, and not one for each of their keys, models and days
-- (docs/design/metering.md, Totals).
--
-- Nanos are split by the kind of token that they were charged for. The charge pays for the input first, then for what was
-- read from the cache, what was written to it, and the output, each up to its price. So the kinds of a request add up to
-- its charge, except for what no token is charged for: an operator's entry, and a hold that was charged whole. That rest is
-- the difference between a row's nanos and the sum of its kinds.

-- Sums bigint into bigint. sum(bigint) returns a numeric, which is slower to add up and slow to convert back.
create aggregate usage_sum(bigint) (
  sfunc = int8pl, stype = bigint, initcond = '0', combinefunc = int8pl, parallel = safe
);

-- The sums of an hour. The team is that of the key when the request was admitted. If there is no team, or no key, as in an
-- operator's entry, the id is all zeros. A row's place in the table follows its time, so that a small index finds a month.
create table usage_hour (
  starts_at timestamptz not null,
  organization_id uuid not null,
  key_id uuid not null,
  team_id uuid not null,
  model text not null,
  operation text not null,
  outcome text not null,
  records bigint not null,
  requests bigint not null,
  input_tokens bigint not null,
  cached_input_tokens bigint not null,
  cache_write_tokens bigint not null,
  output_tokens bigint not null,
  reasoning_tokens bigint not null,
  nanos bigint not null,
  extra_nanos bigint not null,
  uncharged_nanos bigint not null,
  input_nanos bigint not null default 0,
  cached_input_nanos bigint not null default 0,
  cache_write_nanos bigint not null default 0,
  output_nanos bigint not null default 0,
  primary key (organization_id, starts_at, key_id, team_id, model, operation, outcome)
) with (fillfactor = 80);
create index usage_hour_by_start on usage_hour using brin (starts_at) with (pages_per_range = 32, autosummarize = on);

create table usage_day (like usage_hour including all) with (fillfactor = 80);
alter index usage_day_starts_at_idx rename to usage_day_by_start;

-- Each kind of row sums up a different span:
-- - `day`: a day of all organizations, by model, operation and outcome.
-- - `organization`: a month of one organization, by model, operation and outcome.
-- - `key`: a month of a key in a team.
-- - `key_all`, whose start is 'infinity': all months of a key in a team that are kept.
--
-- In a kind that does not distinguish some ids or texts, these ids are zeros, and these texts are empty.
create table usage_total (
  kind text not null,
  like usage_hour,
  primary key (kind, organization_id, starts_at, key_id, team_id, model, operation, outcome)
) with (fillfactor = 80);
create index usage_total_by_start on usage_total using brin (starts_at) with (pages_per_range = 32, autosummarize = on);

-- The transactions whose records were added to the roll-ups of a day. A day that has ended and in which no running request
-- was admitted is compared with its records once. If they agree it is sealed (`sealed_at` is set); a later addition removes
-- the seal.
create table usage_rolled (
  starts_at timestamptz primary key,
  first_xact bigint not null,
  last_xact bigint not null,
  records bigint not null,
  sealed_at timestamptz
);

-- A row that is inserted into one of these views is added to the table's row with the same key.
create view usage_hour_added as select * from usage_hour;
create view usage_day_added as select * from usage_day;
create view usage_total_added as select * from usage_total;
do $$
declare
  sums text;
  added text;
begin
  foreach sums in array array['usage_hour', 'usage_day', 'usage_total'] loop
    select string_agg(format('%1$I = u.%1$I + excluded.%1$I', attname), ', ' order by attnum) into added
    from pg_attribute where attrelid = sums::regclass and atttypid = 'bigint'::regtype and attnum > 0;
    execute format('create rule %1$s_added as on insert to %1$s_added do instead
      insert into %1$s as u values (new.*) on conflict on constraint %1$s_pkey do update set %2$s', sums, added);
  end loop;
end $$;

-- Sums up, for the hours of a time range, the records of transactions whose number is at least `since` and below `until`:
-- docs/design/metering.md, Roll-ups. It avoids sorting, since texts are slow to compare and the planner does not know how
-- few groups there are. An operator's adjustment counts only if it changes what a month has used: an adjustment of a
-- session or a week takes nothing off the bill.
create function usage_recorded_hours(since bigint, until bigint, starts timestamptz, ends timestamptz)
  returns table (
    starts_at timestamptz, organization_id uuid, key_id uuid, team_id uuid, model text, operation text, outcome text,
    records bigint, requests bigint,
    input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint, reasoning_tokens bigint,
    nanos bigint, extra_nanos bigint, uncharged_nanos bigint,
    input_nanos bigint, cached_input_nanos bigint, cache_write_nanos bigint, output_nanos bigint,
    first_xact bigint, last_xact bigint
  )
  language sql stable parallel restricted
  set enable_seqscan = off set enable_sort = off set jit = off
  as $$
    select date_bin('1 hour', r.admitted_at, '2000-01-01Z'), r.organization_id,
      coalesce(r.key_id, '00000000-0000-0000-0000-000000000000'),
      coalesce(r.team_id, '00000000-0000-0000-0000-000000000000'), r.model, r.operation, r.outcome,
      count(*), count(*) filter (where r.operation <> 'adjustment'),
      usage_sum(r.input_tokens), usage_sum(r.cached_input_tokens), usage_sum(r.cache_write_tokens),
      usage_sum(r.output_tokens), usage_sum(r.reasoning_tokens),
      usage_sum(r.charged), usage_sum(r.charged) filter (where r.source = 'extra'),
      usage_sum(r.uncharged), usage_sum(least(c.paid, c.input)),
      usage_sum(least(c.paid, c.with_cached) - least(c.paid, c.input)),
      usage_sum(least(c.paid, c.with_written) - least(c.paid, c.with_cached)),
      usage_sum(least(c.paid, c.with_output) - least(c.paid, c.with_written)),
      min(r.xact), max(r.xact)
    from usage_record r
    cross join lateral (select
      greatest(0, r.charged) as paid,
      k.input, k.input + k.cached as with_cached, k.input + k.cached + k.written as with_written,
      k.input + k.cached + k.written + k.output as with_output
      from (select usage_cost(r.input_tokens, r.price_input) as input,
        usage_cost(r.cached_input_tokens, r.price_cached_input) as cached,
        usage_cost(r.cache_write_tokens, r.price_cache_write) as written,
        usage_cost(r.output_tokens, r.price_output) as output) k
    ) c
    where r.xact >= since and r.xact < until and r.admitted_at >= starts and r.admitted_at < ends
      and (r.operation <> 'adjustment' or r.month_starts_at is not null)
    group by 1, 2, 3, 4, 5, 6, 7
  $$;

-- Adds the records of transactions whose number is at least `since` and below `until` to the hours, the days and the
-- totals. The audit calls it in the statement that moves `read_until`.
create function usage_roll_up(since bigint, until bigint) returns void
  language sql volatile
  as $$
    with hours as materialized (
      select * from usage_recorded_hours(since, until, '-infinity', 'infinity')
    ), days as materialized (
      select date_bin('1 day', h.starts_at, '2000-01-01Z') as day, h.organization_id, h.key_id, h.team_id, h.model,
        h.operation, h.outcome,
        usage_sum(h.records) as records, usage_sum(h.requests) as requests, usage_sum(h.input_tokens) as input_tokens,
        usage_sum(h.cached_input_tokens) as cached_input_tokens, usage_sum(h.cache_write_tokens) as cache_write_tokens,
        usage_sum(h.output_tokens) as output_tokens, usage_sum(h.reasoning_tokens) as reasoning_tokens,
        usage_sum(h.nanos) as nanos, usage_sum(h.extra_nanos) as extra_nanos,
        usage_sum(h.uncharged_nanos) as uncharged_nanos,
        usage_sum(h.input_nanos) as input_nanos, usage_sum(h.cached_input_nanos) as cached_input_nanos,
        usage_sum(h.cache_write_nanos) as cache_write_nanos, usage_sum(h.output_nanos) as output_nanos,
        min(h.first_xact) as first_xact, max(h.last_xact) as last_xact
      from hours h group by 1, 2, 3, 4, 5, 6, 7
    ), by_hour as (
      insert into usage_hour_added
      select h.starts_at, h.organization_id, h.key_id, h.team_id, h.model, h.operation, h.outcome, h.records, h.requests,
        h.input_tokens, h.cached_input_tokens, h.cache_write_tokens, h.output_tokens, h.reasoning_tokens, h.nanos, h.extra_nanos,
        h.uncharged_nanos, h.input_nanos, h.cached_input_nanos, h.cache_write_nanos, h.output_nanos
      from hours h
    ), by_day as (
      insert into usage_day_added
      select d.day, d.organization_id, d.key_id, d.team_id, d.model, d.operation, d.outcome, d.records, d.requests,
        d.input_tokens, d.cached_input_tokens, d.cache_write_tokens, d.output_tokens, d.reasoning_tokens, d.nanos, d.extra_nanos,
        d.uncharged_nanos, d.input_nanos, d.cached_input_nanos, d.cache_write_nanos, d.output_nanos
      from days d
    ), in_total as (
      insert into usage_total_added
      select
        case when grouping(d.day) = 0 then 'day' when grouping(d.key_id) = 1 then 'organization'
          when grouping(m.month) = 0 then 'key' else 'key_all' end,
        coalesce(d.day, m.month, 'infinity'), coalesce(d.organization_id, z.id), coalesce(d.key_id, z.id), coalesce(d.team_id, z.id),
        coalesce(d.model, ''), coalesce(d.operation, ''), coalesce(d.outcome, ''),
        usage_sum(d.records), usage_sum(d.requests), usage_sum(d.input_tokens), usage_sum(d.cached_input_tokens),
        usage_sum(d.cache_write_tokens), usage_sum(d.output_tokens), usage_sum(d.reasoning_tokens), usage_sum(d.nanos),
        usage_sum(d.extra_nanos), usage_sum(d.uncharged_nanos), usage_sum(d.input_nanos), usage_sum(d.cached_input_nanos),
        usage_sum(d.cache_write_nanos), usage_sum(d.output_nanos)
      from days d
      cross join lateral (select date_trunc('month', d.day at time zone 'UTC') at time zone 'UTC' as month) m
      cross join (select '00000000-0000-0000-0000-000000000000'::uuid as id) z
      group by z.id, grouping sets (
        (d.day, d.model, d.operation, d.outcome), (m.month, d.organization_id, d.model, d.operation, d.outcome),
        (m.month, d.organization_id, d.key_id, d.team_id), (d.organization_id, d.key_id, d.team_id)
      )
    )
    insert into usage_rolled as u
    select d.day, min(d.first_xact), max(d.last_xact), usage_sum(d.records), null from days d group by 1
    on conflict (starts_at) do update set
      first_xact = least(u.first_xact, excluded.first_xact), last_xact = greatest(u.last_xact, excluded.last_xact),
      records = u.records + excluded.records, sealed_at = null
  $$;

-- Compares the roll-ups of a day with its records, and returns where they differ: for the hours, and for the day. `used`
-- has the nanos of the roll-ups and `recorded` those of the records, `held` the tokens of the roll-ups and `holding` those
-- of the records, over all rows of an organization that differ. Records that the audit has not read yet are in neither.
create function usage_day_differences(day timestamptz)
  returns table (organization_id uuid, kind text, starts_at timestamptz,
    used bigint, recorded bigint, held bigint, holding bigint)
  language sql stable
  set enable_seqscan = off set jit = off
  as $$
    with recorded as materialized (
      select h.* from usage_recorded_hours(
        (select u.first_xact from usage_rolled u where u.starts_at = day),
        (select least(u.last_xact + 1, a.read_until) from usage_rolled u, usage_audit a where u.starts_at = day),
        day, day + interval '24 hours') h
    ), entries as (
      select 'hour' as kind, 1 as sign, u.*
      from usage_hour u where u.starts_at >= day and u.starts_at < day + interval '24 hours'
      union all
      select 'day', 1, u.* from usage_day u where u.starts_at = day
      union all
      select k.kind, -1, case k.kind when 'day' then day else r.starts_at end, r.organization_id, r.key_id, r.team_id,
        r.model, r.operation, r.outcome, r.records, r.requests, r.input_tokens, r.cached_input_tokens, r.cache_write_tokens,
        r.output_tokens, r.reasoning_tokens, r.nanos, r.extra_nanos, r.uncharged_nanos, r.input_nanos, r.cached_input_nanos, r.cache_write_nanos, r.output_nanos
      from recorded r cross join (values ('hour'), ('day')) k (kind)
    ), differing as (
      select e.kind, e.organization_id,
        sum(e.nanos) filter (where e.sign = 1) as used, sum(e.nanos) filter (where e.sign = -1) as recorded,
        sum(e.input_tokens + e.cached_input_tokens + e.cache_write_tokens + e.output_tokens) filter (where e.sign = 1) as held,
        sum(e.input_tokens + e.cached_input_tokens + e.cache_write_tokens + e.output_tokens) filter (where e.sign = -1)
          as holding
      from entries e
      group by e.kind, e.starts_at, e.organization_id, e.key_id, e.team_id, e.model, e.operation, e.outcome
      having count(*) filter (where e.sign = 1) = 0 or count(*) filter (where e.sign = -1) = 0
        or sum(e.sign * e.records) <> 0 or sum(e.sign * e.requests) <> 0
        or sum(e.sign * e.input_tokens) <> 0 or sum(e.sign * e.cached_input_tokens) <> 0
        or sum(e.sign * e.cache_write_tokens) <> 0 or sum(e.sign * e.output_tokens) <> 0
        or sum(e.sign * e.reasoning_tokens) <> 0 or sum(e.sign * e.nanos) <> 0
        or sum(e.sign * e.extra_nanos) <> 0 or sum(e.sign * e.uncharged_nanos) <> 0
        or sum(e.sign * e.input_nanos) <> 0 or sum(e.sign * e.cached_input_nanos) <> 0
        or sum(e.sign * e.cache_write_nanos) <> 0 or sum(e.sign * e.output_nanos) <> 0
    )
    select d.organization_id, d.kind, day, coalesce(sum(d.used), 0)::bigint, coalesce(sum(d.recorded), 0)::bigint,
      coalesce(sum(d.held), 0)::bigint, coalesce(sum(d.holding), 0)::bigint
    from differing d group by 1, 2
  $$;

-- Compares a day that has ended, and seals it (marks it as compared) if it agrees and no request that was admitted in it
-- still runs. The audit waits meanwhile, so that nothing is added between the comparison and the seal.
create function usage_seal_day(day timestamptz)
  returns table (organization_id uuid, kind text, starts_at timestamptz,
    used bigint, recorded bigint, held bigint, holding bigint)
  language plpgsql volatile
  as $$
  begin
    perform from usage_audit for update;
    return query select * from usage_day_differences(day);
    if not found and not exists (
      select from usage_hold h where h.admitted_at >= day and h.admitted_at < day + interval '24 hours'
    ) then
      update usage_rolled u set sealed_at = store_now()
      where u.starts_at = day and u.sealed_at is null and day + interval '24 hours' <= store_now();
    end if;
  end $$;

-- Records that the audit has read, but that are in no roll-up: their day has no row in usage_rolled, or their transactions
-- are outside of those that this row names. Days that have no roll-ups any more are left out: records with the ID of a node
-- whose clock is years ahead are kept for longer.
create function usage_unrolled(since bigint, until bigint)
  returns table (organization_id uuid, kind text, starts_at timestamptz,
    used bigint, recorded bigint, held bigint, holding bigint)
  language sql stable
  set enable_seqscan = off set jit = off
  as $$
    select h.organization_id, 'day', d.day, 0::bigint, sum(h.nanos)::bigint, 0::bigint,
      sum(h.input_tokens + h.cached_input_tokens + h.cache_write_tokens + h.output_tokens)::bigint
    from usage_recorded_hours(since, until, '-infinity', 'infinity') h
    cross join lateral (select date_bin('1 day', h.starts_at, '2000-01-01Z') as day) d
    left join usage_rolled u on u.starts_at = d.day
    where d.day > (select usage_checked_from())
      and (u.starts_at is null or h.first_xact < u.first_xact or h.last_xact > u.last_xact)
    group by 1, 3
  $$;

-- What a subject had used of the windows in force before it was counted. Of the records in roll-ups, only those of days are
-- read for which the roll-ups have usage of the subject, since many new subjects have none.
create function usage_earlier(own usage_subject) returns setof usage_opening
  language sql stable
  set enable_seqscan = off set jit = off
  as $$
    with keys as materialized (select usage_keys_of(coalesce(own.parent_id, own.subject_id)) as ids),
    spans as materialized (
      select u.first_xact as since, u.last_xact + 1 as until, u.starts_at as starts, u.starts_at + interval '24 hours' as ends
      from usage_rolled u
      where u.starts_at > own.counted_from - interval '41 days' and exists (
        select from keys k, usage_day d
        where d.organization_id = own.organization_id and d.starts_at = u.starts_at
          and usage_counts_in(own, k.ids, d.key_id, d.team_id, d.model))
      union all
      select a.read_until, 9223372036854775807, '-infinity', 'infinity' from usage_audit a
    )
    select own.subject_id, w.kind, w.starts_at, max(w.ends_at), sum(r.charged)::bigint
    from spans s
    cross join keys k
    cross join lateral (
      select * from usage_record r
      where r.xact >= s.since and r.xact < s.until and r.admitted_at >= s.starts and r.admitted_at < s.ends
        and r.organization_id = own.organization_id offset 0
    ) r
    cross join lateral (values
      ('session'::usage_window_kind, r.session_starts_at, r.session_ends_at), ('week', r.week_starts_at, r.week_ends_at),
      ('month', r.month_starts_at, r.month_ends_at)
    ) w (kind, starts_at, ends_at)
    where usage_counts_in(own, k.ids, r.key_id, r.team_id, r.model) and w.ends_at > own.counted_from
      and (r.subjects is null or not own.subject_id = any (r.subjects))
    group by w.kind, w.starts_at having sum(r.charged) > 0
  $$;

-- The totals that the days of a time range add up to.
create function usage_totals_of(starts timestamptz, ends timestamptz) returns setof usage_total
  language sql stable
  set enable_sort = off set jit = off
  as $$
    select
      case when grouping(d.starts_at) = 0 then 'day' when grouping(d.key_id) = 1 then 'organization'
        when grouping(m.month) = 0 then 'key' else 'key_all' end,
      coalesce(d.starts_at, m.month, 'infinity'), coalesce(d.organization_id, z.id), coalesce(d.key_id, z.id), coalesce(d.team_id, z.id),
      coalesce(d.model, ''), coalesce(d.operation, ''), coalesce(d.outcome, ''),
      usage_sum(d.records), usage_sum(d.requests), usage_sum(d.input_tokens), usage_sum(d.cached_input_tokens),
      usage_sum(d.cache_write_tokens), usage_sum(d.output_tokens), usage_sum(d.reasoning_tokens), usage_sum(d.nanos),
      usage_sum(d.extra_nanos), usage_sum(d.uncharged_nanos), usage_sum(d.input_nanos), usage_sum(d.cached_input_nanos),
      usage_sum(d.cache_write_nanos), usage_sum(d.output_nanos)
    from usage_day d
    cross join lateral (select date_trunc('month', d.starts_at at time zone 'UTC') at time zone 'UTC' as month) m
    cross join (select '00000000-0000-0000-0000-000000000000'::uuid as id) z
    where d.starts_at >= starts and d.starts_at < ends
    group by z.id, grouping sets (
      (d.starts_at, d.model, d.operation, d.outcome), (m.month, d.organization_id, d.model, d.operation, d.outcome),
      (m.month, d.organization_id, d.key_id, d.team_id), (d.organization_id, d.key_id, d.team_id)
    )
  $$;

-- When months of keys are deleted, by whatever statement, subtracts them from the sums over all months. The audit waits
-- meanwhile.
create function usage_total_gone() returns trigger
  language plpgsql
  as $$
  begin
    if exists (select from gone where kind = 'key') then
      perform from usage_audit for update;
      insert into usage_total_added
      select 'key_all', 'infinity', g.organization_id, g.key_id, g.team_id, '', '', '',
        -usage_sum(g.records), -usage_sum(g.requests), -usage_sum(g.input_tokens), -usage_sum(g.cached_input_tokens),
        -usage_sum(g.cache_write_tokens), -usage_sum(g.output_tokens), -usage_sum(g.reasoning_tokens), -usage_sum(g.nanos),
        -usage_sum(g.extra_nanos), -usage_sum(g.uncharged_nanos), -usage_sum(g.input_nanos),
        -usage_sum(g.cached_input_nanos), -usage_sum(g.cache_write_nanos), -usage_sum(g.output_nanos)
      from gone g where g.kind = 'key' group by g.organization_id, g.key_id, g.team_id;
      -- Deletes sums of which nothing is left, including those that were deleted together with their months: the
      -- subtraction has made them again.
      delete from usage_total t using gone g
      where g.kind = 'key' and t.kind = 'key_all' and t.starts_at = 'infinity' and t.records <= 0
        and (t.organization_id, t.key_id, t.team_id) = (g.organization_id, g.key_id, g.team_id);
    end if;
    return null;
  end $$;

create trigger usage_total_gone after delete on usage_total
  referencing old table as gone for each statement execute function usage_total_gone();

-- Compares the totals of a month with the roll-ups of its days, and returns where they differ, in the columns of
-- usage_day_differences. The totals of 'infinity', the sums over all months of a key, are compared with the totals of those
-- months. Totals of all organizations have no id.
create function usage_total_differences(month timestamptz)
  returns table (organization_id uuid, kind text, starts_at timestamptz,
    used bigint, recorded bigint, held bigint, holding bigint)
  language sql stable
  set enable_sort = off set jit = off
  as $$
    with span as (
      select month as starts, (month at time zone 'UTC' + interval '1 month') at time zone 'UTC' as ends
    ), kept as (
      select t.* from span s join usage_total t on t.starts_at = month or t.starts_at >= s.starts and t.starts_at < s.ends
    ), made as (
      select d.* from span s cross join lateral usage_totals_of(s.starts, s.ends) d where d.starts_at < s.ends
      union all
      select 'key_all', 'infinity', t.organization_id, t.key_id, t.team_id, '', '', '',
        usage_sum(t.records), usage_sum(t.requests), usage_sum(t.input_tokens), usage_sum(t.cached_input_tokens),
        usage_sum(t.cache_write_tokens), usage_sum(t.output_tokens), usage_sum(t.reasoning_tokens), usage_sum(t.nanos),
        usage_sum(t.extra_nanos), usage_sum(t.uncharged_nanos), usage_sum(t.input_nanos),
        usage_sum(t.cached_input_nanos), usage_sum(t.cache_write_nanos), usage_sum(t.output_nanos)
      from usage_total t where t.kind = 'key' and month = 'infinity'
      group by t.organization_id, t.key_id, t.team_id
    ), differing as (
      select kind, organization_id, kept.nanos as used, made.nanos as recorded,
        kept.input_tokens + kept.cached_input_tokens + kept.cache_write_tokens + kept.output_tokens as held,
        made.input_tokens + made.cached_input_tokens + made.cache_write_tokens + made.output_tokens as holding
      from kept full join made using (kind, organization_id, starts_at, key_id, team_id, model, operation, outcome)
      where kept is distinct from made
    )
    select nullif(d.organization_id, '00000000-0000-0000-0000-000000000000'), 'total', nullif(month, 'infinity'),
      coalesce(usage_sum(d.used), 0), coalesce(usage_sum(d.recorded), 0),
      coalesce(usage_sum(d.held), 0), coalesce(usage_sum(d.holding), 0)
    from differing d group by d.kind, d.organization_id order by d.organization_id, d.kind
  $$;
