-- Totals: what the roll-ups of days add up to where reports ask for less than those tell apart. A report of ten thousand
-- organizations then reads a row for each, and not one for each of their keys, models and days
-- (docs/design/metering.md, Totals).

-- The column that the functions read comes last, since it locks a table that every pass writes.
set local check_function_bodies = off;

-- `day` is a day of all organizations, by model, operation and outcome; `organization` a month of one, by the same; `key` a
-- month of a key in a team, and `key_all`, from 'infinity' on, all its months that are kept. Ids and texts that a kind does
-- not tell apart are zeros and empty.
create table usage_total (
  kind text not null,
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
  units bigint not null,
  extra_units bigint not null,
  uncharged_units bigint not null,
  input_units bigint not null,
  cached_input_units bigint not null,
  cache_write_units bigint not null,
  output_units bigint not null,
  primary key (kind, organization_id, starts_at, key_id, team_id, model, operation, outcome)
) with (fillfactor = 80);
create index usage_total_by_start on usage_total using brin (starts_at) with (pages_per_range = 32, autosummarize = on);

-- A row that is inserted into one of these is added to the row of the table that has its key.
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

-- Adds what these transactions recorded, as 0025 does, and to the totals what is of days that they have.
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
      insert into usage_hour_added
      select h.starts_at, h.organization_id, h.key_id, h.team_id, h.model, h.operation, h.outcome, h.records, h.requests,
        h.input_tokens, h.cached_input_tokens, h.cache_write_tokens, h.output_tokens, h.reasoning_tokens, h.units, h.extra_units,
        h.uncharged_units, h.input_units, h.cached_input_units, h.cache_write_units, h.output_units
      from hours h
    ), by_day as (
      insert into usage_day_added
      select d.day, d.organization_id, d.key_id, d.team_id, d.model, d.operation, d.outcome, d.records, d.requests,
        d.input_tokens, d.cached_input_tokens, d.cache_write_tokens, d.output_tokens, d.reasoning_tokens, d.units, d.extra_units,
        d.uncharged_units, d.input_units, d.cached_input_units, d.cache_write_units, d.output_units
      from days d
    ), in_total as (
      insert into usage_total_added
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
      left join usage_rolled r on r.starts_at = d.day
      where coalesce(r.is_totalled, true)
      group by z.id, grouping sets (
        (d.day, d.model, d.operation, d.outcome), (m.month, d.organization_id, d.model, d.operation, d.outcome),
        (m.month, d.organization_id, d.key_id, d.team_id), (d.organization_id, d.key_id, d.team_id)
      )
    )
    insert into usage_rolled as u
    select d.day, min(d.first_xact), max(d.last_xact), usage_sum(d.records), null, true, true from days d group by 1
    on conflict (starts_at) do update set
      first_xact = least(u.first_xact, excluded.first_xact), last_xact = greatest(u.last_xact, excluded.last_xact),
      records = u.records + excluded.records, sealed_at = null
  $$;

-- Reads on as 0010 does. Totals are made anew with the roll-ups.
create or replace function usage_audit_read(most bigint) returns boolean
  language plpgsql volatile
  set enable_seqscan = off set enable_sort = off set jit = off
  as $$
  declare
    since bigint;
    horizon bigint;
    until bigint;
  begin
    select a.read_until into since from usage_audit a for update;
    horizon := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
    if horizon < since then
      delete from usage_tally;
      delete from usage_seal;
      insert into usage_tally select o.*, 0 from usage_opening o;
      delete from usage_hour;
      delete from usage_day;
      delete from usage_total;
      delete from usage_rolled;
      since := coalesce((select min(r.xact) from usage_record r), horizon);
    end if;
    until := greatest(since, least(horizon, since + most));
    insert into usage_tally as t
    select * from usage_recorded(since, until)
    on conflict (subject_id, kind, starts_at) do update
      set recorded = t.recorded + excluded.recorded, records = t.records + excluded.records;
    perform usage_roll_up(since, until);
    update usage_audit set read_until = until, sealed_until = least(sealed_until, since);
    return until < horizon;
  end $$;

-- The totals of days that have been added to them, or of those that have not.
create function usage_totals_of(starts timestamptz, ends timestamptz, totalled boolean) returns setof usage_total
  language sql stable
  set enable_sort = off set jit = off
  as $$
    select
      case when grouping(d.starts_at) = 0 then 'day' when grouping(d.key_id) = 1 then 'organization'
        when grouping(m.month) = 0 then 'key' else 'key_all' end,
      coalesce(d.starts_at, m.month, 'infinity'), coalesce(d.organization_id, z.id), coalesce(d.key_id, z.id), coalesce(d.team_id, z.id),
      coalesce(d.model, ''), coalesce(d.operation, ''), coalesce(d.outcome, ''),
      usage_sum(d.records), usage_sum(d.requests), usage_sum(d.input_tokens), usage_sum(d.cached_input_tokens),
      usage_sum(d.cache_write_tokens), usage_sum(d.output_tokens), usage_sum(d.reasoning_tokens), usage_sum(d.units),
      usage_sum(d.extra_units), usage_sum(d.uncharged_units), usage_sum(d.input_units), usage_sum(d.cached_input_units),
      usage_sum(d.cache_write_units), usage_sum(d.output_units)
    from usage_day d
    cross join lateral (select date_trunc('month', d.starts_at at time zone 'UTC') at time zone 'UTC' as month) m
    cross join (select '00000000-0000-0000-0000-000000000000'::uuid as id) z
    where d.starts_at >= starts and d.starts_at < ends
      and d.starts_at = any (array(
        select r.starts_at from usage_rolled r
        where r.starts_at >= starts and r.starts_at < ends and r.is_totalled = totalled))
    group by z.id, grouping sets (
      (d.starts_at, d.model, d.operation, d.outcome), (m.month, d.organization_id, d.model, d.operation, d.outcome),
      (m.month, d.organization_id, d.key_id, d.team_id), (d.organization_id, d.key_id, d.team_id)
    )
  $$;

-- Adds a day that is in no total. The pass waits meanwhile: nothing is added between the look and the change.
create function usage_total_day(day timestamptz) returns void
  language plpgsql volatile
  as $$
  begin
    perform from usage_audit for update;
    insert into usage_total_added select t.* from usage_totals_of(day, day + interval '24 hours', false) t;
    update usage_rolled u set is_totalled = true where u.starts_at = day;
  end $$;

-- Months of keys are gone, whoever deletes them: they are taken off what all months add up to. The pass waits meanwhile.
create function usage_total_gone() returns trigger
  language plpgsql
  as $$
  begin
    if exists (select from gone where kind = 'key') then
      perform from usage_audit for update;
      insert into usage_total_added
      select 'key_all', 'infinity', g.organization_id, g.key_id, g.team_id, '', '', '',
        -usage_sum(g.records), -usage_sum(g.requests), -usage_sum(g.input_tokens), -usage_sum(g.cached_input_tokens),
        -usage_sum(g.cache_write_tokens), -usage_sum(g.output_tokens), -usage_sum(g.reasoning_tokens), -usage_sum(g.units),
        -usage_sum(g.extra_units), -usage_sum(g.uncharged_units), -usage_sum(g.input_units),
        -usage_sum(g.cached_input_units), -usage_sum(g.cache_write_units), -usage_sum(g.output_units)
      from gone g where g.kind = 'key' group by g.organization_id, g.key_id, g.team_id;
      -- Nothing is left of them, or they are gone with their months.
      delete from usage_total t using gone g
      where g.kind = 'key' and t.kind = 'key_all' and t.starts_at = 'infinity' and t.records <= 0
        and (t.organization_id, t.key_id, t.team_id) = (g.organization_id, g.key_id, g.team_id);
    end if;
    return null;
  end $$;
create trigger usage_total_gone after delete on usage_total
  referencing old table as gone for each statement execute function usage_total_gone();

-- The totals of a month beside its days, where they differ, in the columns of usage_day_differences; those of 'infinity' are
-- what all months of a key add up to, beside those months. Totals of all organizations have no id.
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
      select d.* from span s cross join lateral usage_totals_of(s.starts, s.ends, true) d where d.starts_at < s.ends
      union all
      select 'key_all', 'infinity', t.organization_id, t.key_id, t.team_id, '', '', '',
        usage_sum(t.records), usage_sum(t.requests), usage_sum(t.input_tokens), usage_sum(t.cached_input_tokens),
        usage_sum(t.cache_write_tokens), usage_sum(t.output_tokens), usage_sum(t.reasoning_tokens), usage_sum(t.units),
        usage_sum(t.extra_units), usage_sum(t.uncharged_units), usage_sum(t.input_units),
        usage_sum(t.cached_input_units), usage_sum(t.cache_write_units), usage_sum(t.output_units)
      from usage_total t where t.kind = 'key' and month = 'infinity'
      group by t.organization_id, t.key_id, t.team_id
    ), differing as (
      select kind, organization_id, kept.units as used, made.units as recorded,
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

-- Whether the totals have all roll-ups of a day, or none of them. Days that are there already are added one after the other
-- (usage_total_day).
alter table usage_rolled add column is_totalled boolean not null default false;
