-- What all months of a key add up to, as long as they are kept: a report by key of most of them then reads a row for each key,
-- and not one for each of its months (docs/design/metering.md, Totals).

-- The column that the functions read comes last, since it locks the row that every pass takes.
set local check_function_bodies = off;

-- Adds what these transactions recorded, as 0032 does, and to what all months of a key add up to.
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
    ), in_total as (
      insert into usage_total as u
      select
        case when grouping(d.day) = 0 then 'day' when grouping(d.key_id) = 1 then 'organization'
          when grouping(m.month) = 0 then 'key' else 'key_all' end,
        coalesce(d.day, m.month, 'infinity'), coalesce(d.organization_id, z.id), coalesce(d.key_id, z.id), coalesce(d.team_id, z.id),
        coalesce(d.model, ''), coalesce(d.operation, ''), coalesce(d.outcome, ''),
        usage_sum(d.records), usage_sum(d.requests), usage_sum(d.input_tokens), usage_sum(d.cached_input_tokens),
        usage_sum(d.cache_write_tokens), usage_sum(d.output_tokens), usage_sum(d.reasoning_tokens), usage_sum(d.units),
        usage_sum(d.extra_units), usage_sum(d.uncharged_units), usage_sum(d.input_units), usage_sum(d.cached_input_units),
        usage_sum(d.cache_write_units), usage_sum(d.output_units)
      from days d
      cross join lateral (select date_trunc('month', d.day at time zone 'UTC') at time zone 'UTC' as month) m
      cross join (select '00000000-0000-0000-0000-000000000000'::uuid as id) z
      cross join usage_audit a
      left join usage_rolled r on r.starts_at = d.day
      where coalesce(r.is_totalled, true)
      group by z.id, a.has_key_all, grouping sets (
        (d.day, d.model, d.operation, d.outcome), (m.month, d.organization_id, d.model, d.operation, d.outcome),
        (m.month, d.organization_id, d.key_id, d.team_id), (d.organization_id, d.key_id, d.team_id)
      )
      having a.has_key_all or grouping(d.day, d.key_id, m.month) <> 5
      on conflict (kind, organization_id, starts_at, key_id, team_id, model, operation, outcome) do update set
        records = u.records + excluded.records, requests = u.requests + excluded.requests,
        input_tokens = u.input_tokens + excluded.input_tokens,
        cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
        cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
        output_tokens = u.output_tokens + excluded.output_tokens,
        reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens, units = u.units + excluded.units,
        extra_units = u.extra_units + excluded.extra_units,
        uncharged_units = u.uncharged_units + excluded.uncharged_units,
        input_units = u.input_units + excluded.input_units,
        cached_input_units = u.cached_input_units + excluded.cached_input_units,
        cache_write_units = u.cache_write_units + excluded.cache_write_units,
        output_units = u.output_units + excluded.output_units
    )
    insert into usage_rolled as u
    select d.day, min(d.first_xact), max(d.last_xact), usage_sum(d.records), null, true, true from days d group by 1
    on conflict (starts_at) do update set
      first_xact = least(u.first_xact, excluded.first_xact), last_xact = greatest(u.last_xact, excluded.last_xact),
      records = u.records + excluded.records, sealed_at = null
  $$;

-- Totals of keys are gone, whoever deletes them: what they add up to is made anew.
create function usage_total_gone() returns trigger
  language plpgsql
  as $$
  begin
    if exists (select from gone where kind = 'key') then
      update usage_audit set has_key_all = false where has_key_all;
    end if;
    return null;
  end $$;
-- Adds up all months of each key. The pass waits meanwhile.
create function usage_total_all() returns void
  language plpgsql volatile
  set enable_sort = off set jit = off
  as $$
  begin
    perform from usage_audit for update;
    delete from usage_total where kind = 'key_all';
    insert into usage_total
    select 'key_all', 'infinity', t.organization_id, t.key_id, t.team_id, '', '', '',
      usage_sum(t.records), usage_sum(t.requests), usage_sum(t.input_tokens), usage_sum(t.cached_input_tokens),
      usage_sum(t.cache_write_tokens), usage_sum(t.output_tokens), usage_sum(t.reasoning_tokens), usage_sum(t.units),
      usage_sum(t.extra_units), usage_sum(t.uncharged_units), usage_sum(t.input_units),
      usage_sum(t.cached_input_units), usage_sum(t.cache_write_units), usage_sum(t.output_units)
    from usage_total t where t.kind = 'key' group by t.organization_id, t.key_id, t.team_id;
    update usage_audit set has_key_all = true;
  end $$;

-- Adds a day that is in no total, as 0032 does.
create or replace function usage_total_day(day timestamptz) returns void
  language plpgsql volatile
  as $$
  begin
    perform from usage_audit for update;
    insert into usage_total as u
    with totals as materialized (
      select t.* from usage_totals_of(day, day + interval '24 hours', false) t
    )
    select t.* from totals t
    union all
    select 'key_all', 'infinity', t.organization_id, t.key_id, t.team_id, '', '', '',
      t.records, t.requests, t.input_tokens, t.cached_input_tokens, t.cache_write_tokens, t.output_tokens,
      t.reasoning_tokens, t.units, t.extra_units, t.uncharged_units, t.input_units, t.cached_input_units,
      t.cache_write_units, t.output_units
    from totals t cross join usage_audit a where t.kind = 'key' and a.has_key_all
    on conflict (kind, organization_id, starts_at, key_id, team_id, model, operation, outcome) do update set
      records = u.records + excluded.records, requests = u.requests + excluded.requests,
      input_tokens = u.input_tokens + excluded.input_tokens,
      cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
      cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
      output_tokens = u.output_tokens + excluded.output_tokens,
      reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens, units = u.units + excluded.units,
      extra_units = u.extra_units + excluded.extra_units,
      uncharged_units = u.uncharged_units + excluded.uncharged_units,
      input_units = u.input_units + excluded.input_units,
      cached_input_units = u.cached_input_units + excluded.cached_input_units,
      cache_write_units = u.cache_write_units + excluded.cache_write_units,
      output_units = u.output_units + excluded.output_units;
    update usage_rolled u set is_totalled = true where u.starts_at = day;
  end $$;

-- What all months of a key add up to beside those months, where they differ, in the columns of usage_day_differences.
create function usage_key_all_differences()
  returns table (organization_id uuid, kind text, starts_at timestamptz,
    used bigint, recorded bigint, held bigint, holding bigint)
  language sql stable
  set enable_sort = off set jit = off
  as $$
    select t.organization_id, 'total', null::timestamptz,
      usage_sum(t.units) filter (where t.kind = 'key_all'), usage_sum(t.units) filter (where t.kind = 'key'),
      usage_sum(t.input_tokens + t.cached_input_tokens + t.cache_write_tokens + t.output_tokens) filter (where t.kind = 'key_all'),
      usage_sum(t.input_tokens + t.cached_input_tokens + t.cache_write_tokens + t.output_tokens) filter (where t.kind = 'key')
    from usage_total t cross join usage_audit a
    where t.kind in ('key', 'key_all') and a.has_key_all
    group by t.organization_id, t.key_id, t.team_id
    having usage_sum(case t.kind when 'key' then -t.records else t.records end) <> 0
      or usage_sum(case t.kind when 'key' then -t.requests else t.requests end) <> 0
      or usage_sum(case t.kind when 'key' then -t.input_tokens else t.input_tokens end) <> 0
      or usage_sum(case t.kind when 'key' then -t.cached_input_tokens else t.cached_input_tokens end) <> 0
      or usage_sum(case t.kind when 'key' then -t.cache_write_tokens else t.cache_write_tokens end) <> 0
      or usage_sum(case t.kind when 'key' then -t.output_tokens else t.output_tokens end) <> 0
      or usage_sum(case t.kind when 'key' then -t.reasoning_tokens else t.reasoning_tokens end) <> 0
      or usage_sum(case t.kind when 'key' then -t.units else t.units end) <> 0
      or usage_sum(case t.kind when 'key' then -t.extra_units else t.extra_units end) <> 0
      or usage_sum(case t.kind when 'key' then -t.uncharged_units else t.uncharged_units end) <> 0
      or usage_sum(case t.kind when 'key' then -t.input_units else t.input_units end) <> 0
      or usage_sum(case t.kind when 'key' then -t.cached_input_units else t.cached_input_units end) <> 0
      or usage_sum(case t.kind when 'key' then -t.cache_write_units else t.cache_write_units end) <> 0
      or usage_sum(case t.kind when 'key' then -t.output_units else t.output_units end) <> 0
    order by 1
  $$;

create trigger usage_total_gone after delete on usage_total
  referencing old table as gone for each statement execute function usage_total_gone();

-- Whether the totals of kind `key_all` are there: those of kind `key` over all months. Where they are not, the pass makes them.
alter table usage_audit add column has_key_all boolean not null default false;
update usage_audit set has_key_all = not exists (select from usage_total);
