-- Roll-ups: what records add up to by the hour and by the day (UTC) in which their requests were admitted. The audit's
-- pass adds each record once, over exactly the transactions that it reads (docs/design/metering.md, Roll-ups).

-- The team is the one that the key was in when the request was admitted. No team, and no key of an operator's entry, is the
-- id of zeros. A row's place in the table follows its time, so that a small index
-- finds a month.
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
  units bigint not null,
  extra_units bigint not null,
  uncharged_units bigint not null,
  primary key (organization_id, starts_at, key_id, team_id, model, operation, outcome)
) with (fillfactor = 80);
create index usage_hour_by_start on usage_hour using brin (starts_at) with (pages_per_range = 32, autosummarize = on);

create table usage_day (like usage_hour including all) with (fillfactor = 80);
alter index usage_day_starts_at_idx rename to usage_day_by_start;

-- The transactions that the roll-ups of a day were added from. A day that has ended and to which no hold points is
-- compared with its records once, and sealed. A later addition removes the seal.
create table usage_rolled (
  starts_at timestamptz primary key,
  first_xact bigint not null,
  last_xact bigint not null,
  records bigint not null,
  sealed_at timestamptz
);

-- The amounts that records of transactions from `since` on, and before `until`, add to the hours of a span. It avoids
-- sorting, since texts are slow to compare and the planner does not know how few groups there are. An operator's entry
-- counts where it changes what a month has used: one for a session or a week takes nothing off the bill.
create function usage_hours(since bigint, until bigint, starts timestamptz, ends timestamptz)
  returns table (
    starts_at timestamptz, organization_id uuid, key_id uuid, team_id uuid, model text, operation text, outcome text,
    records bigint, requests bigint,
    input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint, reasoning_tokens bigint,
    units bigint, extra_units bigint, uncharged_units bigint, first_xact bigint, last_xact bigint
  )
  language sql stable parallel restricted
  set enable_seqscan = off set enable_sort = off set jit = off
  as $$
    select date_bin('1 hour', r.admitted_at, '2000-01-01Z'), r.organization_id,
      coalesce(r.key_id, '00000000-0000-0000-0000-000000000000'),
      coalesce(r.team_id, '00000000-0000-0000-0000-000000000000'), r.model, r.operation, r.outcome,
      count(*), count(*) filter (where r.operation <> 'adjustment'),
      sum(r.input_tokens)::bigint, sum(r.cached_input_tokens)::bigint, sum(r.cache_write_tokens)::bigint,
      sum(r.output_tokens)::bigint, sum(r.reasoning_tokens)::bigint,
      sum(r.charged)::bigint, coalesce(sum(r.charged) filter (where r.source = 'extra'), 0)::bigint,
      sum(r.uncharged)::bigint, min(r.xact), max(r.xact)
    from usage_record r
    where r.xact >= since and r.xact < until and r.admitted_at >= starts and r.admitted_at < ends
      and (r.operation <> 'adjustment' or r.month_starts_at is not null)
    group by 1, 2, 3, 4, 5, 6, 7
  $$;

-- Adds what these transactions recorded. The audit calls it in the statement that moves `read_until`.
create function usage_roll_up(since bigint, until bigint) returns void
  language sql volatile
  as $$
    with hours as materialized (
      select * from usage_hours(since, until, '-infinity', 'infinity')
    ), days as materialized (
      select date_bin('1 day', h.starts_at, '2000-01-01Z') as day, h.organization_id, h.key_id, h.team_id, h.model,
        h.operation, h.outcome,
        sum(h.records)::bigint as records, sum(h.requests)::bigint as requests, sum(h.input_tokens)::bigint as input_tokens,
        sum(h.cached_input_tokens)::bigint as cached_input_tokens, sum(h.cache_write_tokens)::bigint as cache_write_tokens,
        sum(h.output_tokens)::bigint as output_tokens, sum(h.reasoning_tokens)::bigint as reasoning_tokens,
        sum(h.units)::bigint as units, sum(h.extra_units)::bigint as extra_units,
        sum(h.uncharged_units)::bigint as uncharged_units, min(h.first_xact) as first_xact, max(h.last_xact) as last_xact
      from hours h group by 1, 2, 3, 4, 5, 6, 7
    ), by_hour as (
      insert into usage_hour as u
      select h.starts_at, h.organization_id, h.key_id, h.team_id, h.model, h.operation, h.outcome, h.records, h.requests,
        h.input_tokens, h.cached_input_tokens, h.cache_write_tokens, h.output_tokens, h.reasoning_tokens, h.units, h.extra_units,
        h.uncharged_units
      from hours h
      on conflict (organization_id, starts_at, key_id, team_id, model, operation, outcome) do update set
        records = u.records + excluded.records, requests = u.requests + excluded.requests,
        input_tokens = u.input_tokens + excluded.input_tokens,
        cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
        cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
        output_tokens = u.output_tokens + excluded.output_tokens,
        reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens,
        units = u.units + excluded.units, extra_units = u.extra_units + excluded.extra_units,
        uncharged_units = u.uncharged_units + excluded.uncharged_units
    ), by_day as (
      insert into usage_day as u
      select d.day, d.organization_id, d.key_id, d.team_id, d.model, d.operation, d.outcome, d.records, d.requests,
        d.input_tokens, d.cached_input_tokens, d.cache_write_tokens, d.output_tokens, d.reasoning_tokens, d.units, d.extra_units,
        d.uncharged_units
      from days d
      on conflict (organization_id, starts_at, key_id, team_id, model, operation, outcome) do update set
        records = u.records + excluded.records, requests = u.requests + excluded.requests,
        input_tokens = u.input_tokens + excluded.input_tokens,
        cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
        cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
        output_tokens = u.output_tokens + excluded.output_tokens,
        reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens,
        units = u.units + excluded.units, extra_units = u.extra_units + excluded.extra_units,
        uncharged_units = u.uncharged_units + excluded.uncharged_units
    )
    insert into usage_rolled as u
    select d.day, min(d.first_xact), max(d.last_xact), sum(d.records)::bigint, null from days d group by 1
    on conflict (starts_at) do update set
      first_xact = least(u.first_xact, excluded.first_xact), last_xact = greatest(u.last_xact, excluded.last_xact),
      records = u.records + excluded.records, sealed_at = null
  $$;

-- The roll-ups of a day beside its records, where they differ: of the hours, and of the day. `used` are the units that were
-- rolled up and `recorded` those of the records, `held` and `holding` the same of tokens, in all rows of an organization
-- that differ. What nobody has read yet is in neither.
create function usage_day_differences(day timestamptz)
  returns table (organization_id uuid, kind text, starts_at timestamptz,
    used bigint, recorded bigint, held bigint, holding bigint)
  language sql stable
  set enable_seqscan = off set jit = off
  as $$
    with recorded as materialized (
      select h.* from usage_hours(
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
        r.units, r.extra_units, r.uncharged_units
      from rolled r
      union all
      select k.kind, -1, case k.kind when 'day' then day else r.starts_at end, r.organization_id, r.key_id, r.team_id,
        r.model, r.operation, r.outcome, r.records, r.requests, r.input_tokens, r.cached_input_tokens, r.cache_write_tokens,
        r.output_tokens, r.reasoning_tokens, r.units, r.extra_units, r.uncharged_units
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
    )
    select d.organization_id, d.kind, day, coalesce(sum(d.used), 0)::bigint, coalesce(sum(d.recorded), 0)::bigint,
      coalesce(sum(d.held), 0)::bigint, coalesce(sum(d.holding), 0)::bigint
    from differing d group by 1, 2
  $$;

-- Compares a day that has ended, and seals it if it agrees and no hold points to it. The pass waits meanwhile: nothing is
-- added between the look and the seal.
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

-- Records that a pass has read and that lie outside of what was noted for their days: in no roll-up, or nowhere to be found.
create function usage_unrolled(since bigint, until bigint)
  returns table (organization_id uuid, kind text, starts_at timestamptz,
    used bigint, recorded bigint, held bigint, holding bigint)
  language sql stable
  set enable_seqscan = off set jit = off
  as $$
    select h.organization_id, 'day', d.day, 0::bigint, sum(h.units)::bigint, 0::bigint,
      sum(h.input_tokens + h.cached_input_tokens + h.cache_write_tokens + h.output_tokens)::bigint
    from usage_hours(since, until, '-infinity', 'infinity') h
    cross join lateral (select date_bin('1 day', h.starts_at, '2000-01-01Z') as day) d
    left join usage_rolled u on u.starts_at = d.day
    where u.starts_at is null or h.first_xact < u.first_xact or h.last_xact > u.last_xact
    group by 1, 3
  $$;
