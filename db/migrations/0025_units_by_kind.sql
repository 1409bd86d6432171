-- Units by the kind of token that they were charged for. What was charged pays the input first, then what was read from
-- the cache, what was written to it, and the output, each up to its price. So the kinds of a request add up to its
-- charge, but for what is no token's: an operator's entry, and a hold that was charged whole. That rest is what a row's
-- units are more than its kinds.

-- The sum of whole numbers as one. That of sum(bigint) is a numeric: slower to add up, and slow to turn back.
create aggregate usage_sum(bigint) (
  sfunc = int8pl, stype = bigint, initcond = '0', combinefunc = int8pl, parallel = safe
);

-- What records of transactions from `since` on, and before `until`, add to the hours of a span: docs/design/metering.md,
-- Roll-ups. It avoids sorting, as 0014 says.
create function usage_recorded_hours(since bigint, until bigint, starts timestamptz, ends timestamptz)
  returns table (
    starts_at timestamptz, organization_id uuid, key_id uuid, team_id uuid, model text, operation text, outcome text,
    records bigint, requests bigint,
    input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint, reasoning_tokens bigint,
    units bigint, extra_units bigint, uncharged_units bigint,
    input_units bigint, cached_input_units bigint, cache_write_units bigint, output_units bigint,
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
      r.input_tokens * r.price_input as input,
      r.input_tokens * r.price_input + r.cached_input_tokens * r.price_cached_input as with_cached,
      r.input_tokens * r.price_input + r.cached_input_tokens * r.price_cached_input
        + r.cache_write_tokens * r.price_cache_write as with_written,
      r.input_tokens * r.price_input + r.cached_input_tokens * r.price_cached_input
        + r.cache_write_tokens * r.price_cache_write + r.output_tokens * r.price_output as with_output
    ) c
    where r.xact >= since and r.xact < until and r.admitted_at >= starts and r.admitted_at < ends
      and (r.operation <> 'adjustment' or r.month_starts_at is not null)
    group by 1, 2, 3, 4, 5, 6, 7
  $$;

-- Nodes of the version before ask for it, and the list of requests does.
create or replace function usage_hours(since bigint, until bigint, starts timestamptz, ends timestamptz)
  returns table (
    starts_at timestamptz, organization_id uuid, key_id uuid, team_id uuid, model text, operation text, outcome text,
    records bigint, requests bigint,
    input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint, reasoning_tokens bigint,
    units bigint, extra_units bigint, uncharged_units bigint, first_xact bigint, last_xact bigint
  )
  language sql stable parallel restricted
  as $$
    select h.starts_at, h.organization_id, h.key_id, h.team_id, h.model, h.operation, h.outcome, h.records, h.requests,
      h.input_tokens, h.cached_input_tokens, h.cache_write_tokens, h.output_tokens, h.reasoning_tokens, h.units,
      h.extra_units, h.uncharged_units, h.first_xact, h.last_xact
    from usage_recorded_hours(since, until, starts, ends) h
  $$;

-- Rows that are there already say nothing of kinds, until the days that they are of are split (usage_split_day).
alter table usage_hour
  add column input_units bigint not null default 0, add column cached_input_units bigint not null default 0,
  add column cache_write_units bigint not null default 0, add column output_units bigint not null default 0;
alter table usage_day
  add column input_units bigint not null default 0, add column cached_input_units bigint not null default 0,
  add column cache_write_units bigint not null default 0, add column output_units bigint not null default 0;
-- Whether the rows of a day have the kinds of all its records.
alter table usage_rolled add column is_split boolean not null default false;

-- Adds what these transactions recorded, as 0014 does, with the kinds.
create or replace function usage_roll_up(since bigint, until bigint) returns void
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
        usage_sum(h.units) as units, usage_sum(h.extra_units) as extra_units,
        usage_sum(h.uncharged_units) as uncharged_units,
        usage_sum(h.input_units) as input_units, usage_sum(h.cached_input_units) as cached_input_units,
        usage_sum(h.cache_write_units) as cache_write_units, usage_sum(h.output_units) as output_units,
        min(h.first_xact) as first_xact, max(h.last_xact) as last_xact
      from hours h group by 1, 2, 3, 4, 5, 6, 7
    ), by_hour as (
      insert into usage_hour as u
      select h.starts_at, h.organization_id, h.key_id, h.team_id, h.model, h.operation, h.outcome, h.records, h.requests,
        h.input_tokens, h.cached_input_tokens, h.cache_write_tokens, h.output_tokens, h.reasoning_tokens, h.units, h.extra_units,
        h.uncharged_units, h.input_units, h.cached_input_units, h.cache_write_units, h.output_units
      from hours h
      on conflict (organization_id, starts_at, key_id, team_id, model, operation, outcome) do update set
        records = u.records + excluded.records, requests = u.requests + excluded.requests,
        input_tokens = u.input_tokens + excluded.input_tokens,
        cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
        cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
        output_tokens = u.output_tokens + excluded.output_tokens,
        reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens,
        units = u.units + excluded.units, extra_units = u.extra_units + excluded.extra_units,
        uncharged_units = u.uncharged_units + excluded.uncharged_units,
        input_units = u.input_units + excluded.input_units,
        cached_input_units = u.cached_input_units + excluded.cached_input_units,
        cache_write_units = u.cache_write_units + excluded.cache_write_units,
        output_units = u.output_units + excluded.output_units
    ), by_day as (
      insert into usage_day as u
      select d.day, d.organization_id, d.key_id, d.team_id, d.model, d.operation, d.outcome, d.records, d.requests,
        d.input_tokens, d.cached_input_tokens, d.cache_write_tokens, d.output_tokens, d.reasoning_tokens, d.units, d.extra_units,
        d.uncharged_units, d.input_units, d.cached_input_units, d.cache_write_units, d.output_units
      from days d
      on conflict (organization_id, starts_at, key_id, team_id, model, operation, outcome) do update set
        records = u.records + excluded.records, requests = u.requests + excluded.requests,
        input_tokens = u.input_tokens + excluded.input_tokens,
        cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
        cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
        output_tokens = u.output_tokens + excluded.output_tokens,
        reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens,
        units = u.units + excluded.units, extra_units = u.extra_units + excluded.extra_units,
        uncharged_units = u.uncharged_units + excluded.uncharged_units,
        input_units = u.input_units + excluded.input_units,
        cached_input_units = u.cached_input_units + excluded.cached_input_units,
        cache_write_units = u.cache_write_units + excluded.cache_write_units,
        output_units = u.output_units + excluded.output_units
    )
    insert into usage_rolled as u
    select d.day, min(d.first_xact), max(d.last_xact), usage_sum(d.records), null, true from days d group by 1
    on conflict (starts_at) do update set
      first_xact = least(u.first_xact, excluded.first_xact), last_xact = greatest(u.last_xact, excluded.last_xact),
      records = u.records + excluded.records, sealed_at = null
  $$;

-- Compares a day as 0014 does, and the kinds where the day has been split.
create or replace function usage_day_differences(day timestamptz)
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
    ), rolled as (
      select 'hour' as kind, u.* from usage_hour u where u.starts_at >= day and u.starts_at < day + interval '24 hours'
      union all
      select 'day', u.* from usage_day u where u.starts_at = day
    ), entries as (
      select r.kind, 1 as sign, r.starts_at, r.organization_id, r.key_id, r.team_id, r.model, r.operation, r.outcome,
        r.records, r.requests, r.input_tokens, r.cached_input_tokens, r.cache_write_tokens, r.output_tokens, r.reasoning_tokens,
        r.units, r.extra_units, r.uncharged_units, r.input_units, r.cached_input_units, r.cache_write_units, r.output_units
      from rolled r
      union all
      select k.kind, -1, case k.kind when 'day' then day else r.starts_at end, r.organization_id, r.key_id, r.team_id,
        r.model, r.operation, r.outcome, r.records, r.requests, r.input_tokens, r.cached_input_tokens, r.cache_write_tokens,
        r.output_tokens, r.reasoning_tokens, r.units, r.extra_units, r.uncharged_units, r.input_units, r.cached_input_units, r.cache_write_units, r.output_units
      from recorded r cross join (values ('hour'), ('day')) k (kind)
    ), differing as (
      select e.kind, e.organization_id,
        sum(e.units) filter (where e.sign = 1) as used, sum(e.units) filter (where e.sign = -1) as recorded,
        sum(e.input_tokens + e.cached_input_tokens + e.cache_write_tokens + e.output_tokens) filter (where e.sign = 1) as held,
        sum(e.input_tokens + e.cached_input_tokens + e.cache_write_tokens + e.output_tokens) filter (where e.sign = -1)
          as holding
      from entries e
      group by e.kind, e.starts_at, e.organization_id, e.key_id, e.team_id, e.model, e.operation, e.outcome
      having count(*) filter (where e.sign = 1) = 0 or count(*) filter (where e.sign = -1) = 0
        or sum(e.sign * e.records) <> 0 or sum(e.sign * e.requests) <> 0
        or sum(e.sign * e.input_tokens) <> 0 or sum(e.sign * e.cached_input_tokens) <> 0
        or sum(e.sign * e.cache_write_tokens) <> 0 or sum(e.sign * e.output_tokens) <> 0
        or sum(e.sign * e.reasoning_tokens) <> 0 or sum(e.sign * e.units) <> 0
        or sum(e.sign * e.extra_units) <> 0 or sum(e.sign * e.uncharged_units) <> 0
        or (select coalesce(max(u.is_split::int), 1) = 1 from usage_rolled u where u.starts_at = day) and (
          sum(e.sign * e.input_units) <> 0 or sum(e.sign * e.cached_input_units) <> 0
          or sum(e.sign * e.cache_write_units) <> 0 or sum(e.sign * e.output_units) <> 0)
    )
    select d.organization_id, d.kind, day, coalesce(sum(d.used), 0)::bigint, coalesce(sum(d.recorded), 0)::bigint,
      coalesce(sum(d.held), 0)::bigint, coalesce(sum(d.holding), 0)::bigint
    from differing d group by 1, 2
  $$;

-- Splits the units of a day that was rolled up before there were kinds, from those of its records that are kept still.
-- The pass waits meanwhile: nothing is added between the look and the change.
create function usage_split_day(day timestamptz) returns void
  language plpgsql volatile
  set enable_seqscan = off set jit = off
  as $$
  begin
    perform from usage_audit for update;
    with recorded as materialized (
      select h.* from usage_recorded_hours(
        (select u.first_xact from usage_rolled u where u.starts_at = day),
        (select least(u.last_xact + 1, a.read_until) from usage_rolled u, usage_audit a where u.starts_at = day),
        day, day + interval '24 hours') h
    ), hours as (
      update usage_hour u set input_units = r.input_units, cached_input_units = r.cached_input_units,
        cache_write_units = r.cache_write_units, output_units = r.output_units
      from recorded r
      where u.organization_id = r.organization_id and u.starts_at = r.starts_at and u.key_id = r.key_id
        and u.team_id = r.team_id and u.model = r.model and u.operation = r.operation and u.outcome = r.outcome
    ), days as (
      update usage_day u set input_units = r.input_units, cached_input_units = r.cached_input_units,
        cache_write_units = r.cache_write_units, output_units = r.output_units
      from (
        select r.organization_id, r.key_id, r.team_id, r.model, r.operation, r.outcome,
          usage_sum(r.input_units) as input_units, usage_sum(r.cached_input_units) as cached_input_units,
          usage_sum(r.cache_write_units) as cache_write_units, usage_sum(r.output_units) as output_units
        from recorded r group by 1, 2, 3, 4, 5, 6
      ) r
      where u.organization_id = r.organization_id and u.starts_at = day and u.key_id = r.key_id
        and u.team_id = r.team_id and u.model = r.model and u.operation = r.operation and u.outcome = r.outcome
    )
    update usage_rolled u set is_split = true where u.starts_at = day;
  end $$;
