-- What was used: windows, holds of running requests, records of ended ones. The verbs and their answers are
-- described in src/store/ledger.ts. Units are micro-units; ids are bare UUIDs.

create type usage_window_kind as enum ('session', 'week', 'month', 'extra');
create type usage_billing as enum ('plan', 'extra');

-- What one organization has open: how many requests run, and when the running session began.
create table usage_account (
  organization_id uuid primary key,
  running bigint not null default 0,
  session_starts_at timestamptz
) with (fillfactor = 50);

-- A new subscription anchor, and from when on it counts: months from the end of the month that ran when it was set,
-- weeks from the first end of a week after that. Before the first row the organization's own anchor counts.
create table usage_anchor (
  organization_id uuid not null,
  month_from timestamptz not null,
  week_from timestamptz not null check (week_from >= month_from),
  anchor_at timestamptz not null check (anchor_at = date_trunc('milliseconds', anchor_at)),
  primary key (organization_id, month_from)
);

-- One row per window that was ever used; never zeroed. `used` is the sum of the records' charges, `held` that of the
-- holds. Kind `extra` is what extra usage took in a billing month.
create table usage_window (
  organization_id uuid not null,
  kind usage_window_kind not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null check (ends_at > starts_at),
  used bigint not null,
  held bigint not null,
  primary key (organization_id, kind, starts_at)
) with (fillfactor = 50);

-- One row per running request. No index on the lease: its every extension would then be a new index entry, and a
-- sweep reads this small table whole.
create table usage_hold (
  request_id uuid primary key,
  organization_id uuid not null,
  key_id uuid not null,
  operation text not null,
  model text not null,
  stream boolean not null,
  price_input bigint not null,
  price_cached_input bigint not null,
  price_cache_write bigint not null,
  price_output bigint not null,
  source usage_billing not null,
  units bigint not null,
  output_tokens bigint not null,
  admitted_at timestamptz not null,
  lease_until timestamptz not null,
  -- The windows it was admitted in, their limits, and what was used of them just before.
  session_starts_at timestamptz not null,
  session_ends_at timestamptz not null,
  session_limit bigint,
  session_used bigint not null,
  week_starts_at timestamptz not null,
  week_ends_at timestamptz not null,
  week_limit bigint,
  week_used bigint not null,
  month_starts_at timestamptz not null,
  month_ends_at timestamptz not null,
  month_limit bigint,
  month_used bigint not null,
  -- The last checkpoint; number 0 says that there was none.
  checkpoint integer not null default 0,
  input_tokens bigint not null default 0,
  cached_input_tokens bigint not null default 0,
  cache_write_tokens bigint not null default 0,
  produced_tokens bigint not null default 0,
  reasoning_tokens bigint not null default 0,
  usage_source text not null default 'counted'
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- One row per ended request, never changed. A request that was given up before its admission was answered has no
-- windows. A partition holds a month of ids (UUIDv7 sorts by time); the default one takes ids of nodes whose clock is
-- far off, so that no settlement ever fails for want of a partition.
create table usage_record (
  request_id uuid primary key,
  organization_id uuid not null,
  key_id uuid,
  operation text not null,
  model text not null,
  stream boolean not null,
  price_input bigint not null,
  price_cached_input bigint not null,
  price_cache_write bigint not null,
  price_output bigint not null,
  source usage_billing not null,
  held bigint not null,
  charged bigint not null,
  uncharged bigint not null,
  admitted_at timestamptz not null,
  ended_at timestamptz not null,
  outcome text not null,
  stopped_by text,
  error_code text,
  recovered boolean not null,
  input_tokens bigint not null,
  cached_input_tokens bigint not null,
  cache_write_tokens bigint not null,
  output_tokens bigint not null,
  reasoning_tokens bigint not null,
  usage_source text not null,
  session_starts_at timestamptz,
  session_ends_at timestamptz,
  session_limit bigint,
  session_used_before bigint,
  session_used_after bigint,
  week_starts_at timestamptz,
  week_ends_at timestamptz,
  week_limit bigint,
  week_used_before bigint,
  week_used_after bigint,
  month_starts_at timestamptz,
  month_ends_at timestamptz,
  month_limit bigint,
  month_used_before bigint,
  month_used_after bigint,
  upstream text,
  attempts integer,
  first_part_ms bigint
) partition by range (request_id);
create table usage_record_default partition of usage_record default;

-- The functions below that are called within a batch are PL/pgSQL, also where SQL would do: it keeps their plans.

-- Windows are functions of anchor and instant. UTC throughout; hours and not days, so that no zone's summer time counts.

create function usage_week(anchor_at timestamptz, at timestamptz, out starts_at timestamptz, out ends_at timestamptz)
  language plpgsql immutable parallel safe
  as $$
  begin
    starts_at := anchor_at + floor(extract(epoch from at - anchor_at) / 604800) * interval '168 hours';
    ends_at := starts_at + interval '168 hours';
  end $$;

-- Counted from the anchor itself, never from the month before: the day is clamped afresh (31 January, 28 February,
-- 31 March).
create function usage_month(anchor_at timestamptz, at timestamptz, out starts_at timestamptz, out ends_at timestamptz)
  language plpgsql immutable parallel safe
  as $$
  declare
    origin timestamp := anchor_at at time zone 'UTC';
    moment timestamp := at at time zone 'UTC';
    months integer := (extract(year from moment) - extract(year from origin)) * 12
      + extract(month from moment) - extract(month from origin);
  begin
    if origin + make_interval(months => months) > moment then
      months := months - 1;
    end if;
    starts_at := (origin + make_interval(months => months)) at time zone 'UTC';
    ends_at := (origin + make_interval(months => months + 1)) at time zone 'UTC';
  end $$;

-- The week and the month that an organization is in. No row: there is no such organization.
create function usage_calendar(organization uuid, at timestamptz)
  returns table (week_starts_at timestamptz, week_ends_at timestamptz, month_starts_at timestamptz, month_ends_at timestamptz)
  language sql stable
  as $$
    select greatest(week.starts_at, weekly.week_from), week.ends_at,
      greatest(month.starts_at, monthly.month_from), month.ends_at
    from organization
    left join lateral (
      select a.anchor_at, a.week_from from usage_anchor a
      where a.organization_id = organization.id and a.week_from <= at
      order by a.week_from desc, a.month_from desc limit 1
    ) weekly on true
    left join lateral (
      select a.anchor_at, a.month_from from usage_anchor a
      where a.organization_id = organization.id and a.month_from <= at
      order by a.month_from desc limit 1
    ) monthly on true
    cross join lateral usage_week(coalesce(weekly.anchor_at, organization.anchor_at), at) week
    cross join lateral usage_month(coalesce(monthly.anchor_at, organization.anchor_at), at) month
    where organization.id = usage_calendar.organization
  $$;

-- All that changes what an organization used takes this lock first, for several organizations in ascending order, and
-- looks only in later statements: a look in the statement that takes the lock would see what was before the wait.
create function usage_lock(organizations uuid[]) returns void
  language plpgsql
  as $$
  declare
    lock bigint;
  begin
    if current_setting('transaction_isolation') <> 'read committed' then
      raise exception 'the ledger works in READ COMMITTED alone, and this transaction is %',
        upper(current_setting('transaction_isolation')) using errcode = 'invalid_transaction_state';
    end if;
    for lock in select distinct uuid_hash_extended(id, 0) from unnest(organizations) id order by 1 loop
      perform pg_advisory_xact_lock(lock);
    end loop;
  end $$;

-- A new anchor takes effect when the running month ends; one that was not yet in effect is replaced. Answers when.
create function usage_set_anchor(organization uuid, anchor timestamptz) returns timestamptz
  language plpgsql
  as $$
  declare
    at timestamptz;
    effective_at timestamptz;
    week record;
  begin
    perform usage_lock(array[organization]);
    at := store_now();
    delete from usage_anchor where organization_id = organization and month_from > at;
    select month_ends_at into effective_at from usage_calendar(organization, at);
    if effective_at is null then
      return null;
    end if;
    select week_starts_at as starts_at, week_ends_at as ends_at into week from usage_calendar(organization, effective_at);
    insert into usage_anchor (organization_id, month_from, week_from, anchor_at) values (
      organization, effective_at,
      case when week.starts_at = effective_at then effective_at else week.ends_at end,
      date_trunc('milliseconds', anchor)
    );
    return effective_at;
  end $$;

-- The commands of a batch. `position` says where its answer belongs.

create type usage_admit as (
  position integer, request_id uuid, organization_id uuid, key_id uuid, operation text, model text, stream boolean,
  price_input bigint, price_cached_input bigint, price_cache_write bigint, price_output bigint,
  session_limit bigint, week_limit bigint, month_limit bigint, concurrent_limit bigint,
  input_units bigint, output_tokens bigint, output_tokens_min bigint, lease_ms bigint
);
create type usage_grow as (
  position integer, request_id uuid, organization_id uuid,
  session_limit bigint, week_limit bigint, month_limit bigint,
  units_total bigint, units_total_min bigint
);
create type usage_checkpoint as (
  position integer, request_id uuid, organization_id uuid, number integer,
  input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
  reasoning_tokens bigint, usage_source text, lease_ms bigint
);
create type usage_settle as (
  position integer, request_id uuid, organization_id uuid, key_id uuid, operation text, model text, stream boolean,
  price_input bigint, price_cached_input bigint, price_cache_write bigint, price_output bigint,
  session_limit bigint, week_limit bigint, month_limit bigint,
  input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
  reasoning_tokens bigint, usage_source text,
  units bigint, outcome text, stopped_by text, error_code text,
  upstream text, attempts integer, first_part_ms bigint,
  -- Of a lapsed hold: everything but the ids comes from the hold.
  recover boolean
);
-- Windows and totals are as they were just before this command. `hold` stands for a grant that was given earlier.
create type usage_answer as (
  position integer, answer text, at timestamptz,
  units bigint, output_tokens bigint, source usage_billing, charged bigint, uncharged bigint,
  session_starts_at timestamptz, session_ends_at timestamptz, session_used bigint, session_held bigint,
  week_starts_at timestamptz, week_ends_at timestamptz, week_used bigint, week_held bigint,
  month_starts_at timestamptz, month_ends_at timestamptz, month_used bigint, month_held bigint,
  extra_enabled boolean, extra_cap bigint, extra_used bigint, extra_held bigint
);

-- The totals of the windows that one or more requests of an organization were admitted in.
create type usage_totals as (
  organization_id uuid,
  session_starts_at timestamptz, session_ends_at timestamptz, session_used bigint, session_held bigint,
  week_starts_at timestamptz, week_ends_at timestamptz, week_used bigint, week_held bigint,
  month_starts_at timestamptz, month_ends_at timestamptz, month_used bigint, month_held bigint,
  extra_used bigint, extra_held bigint,
  -- Which of them were changed.
  plan_changed boolean, extra_changed boolean
);

create function usage_totals_of(
  organization uuid,
  session_starts_at timestamptz, session_ends_at timestamptz,
  week_starts_at timestamptz, week_ends_at timestamptz,
  month_starts_at timestamptz, month_ends_at timestamptz
) returns usage_totals
  language plpgsql stable
  as $$
  declare
    totals usage_totals;
  begin
    select organization,
      $2, $3, coalesce(sum(used) filter (where k = 'session'), 0), coalesce(sum(held) filter (where k = 'session'), 0),
      $4, $5, coalesce(sum(used) filter (where k = 'week'), 0), coalesce(sum(held) filter (where k = 'week'), 0),
      $6, $7, coalesce(sum(used) filter (where k = 'month'), 0), coalesce(sum(held) filter (where k = 'month'), 0),
      coalesce(sum(used) filter (where k = 'extra'), 0), coalesce(sum(held) filter (where k = 'extra'), 0),
      false, false
    into totals
    from (values ('session'::usage_window_kind, $2), ('week', $4), ('month', $6), ('extra', $6)) wanted (k, s)
    left join usage_window w on w.organization_id = organization and w.kind = k and w.starts_at = s;
    return totals;
  end $$;

create function usage_save(totals usage_totals) returns void
  language plpgsql volatile
  as $$
  begin
    insert into usage_window (organization_id, kind, starts_at, ends_at, used, held)
    select totals.organization_id, k, s, e, u, h
    from (values
      ('session'::usage_window_kind, totals.session_starts_at, totals.session_ends_at, totals.session_used, totals.session_held, totals.plan_changed),
      ('week', totals.week_starts_at, totals.week_ends_at, totals.week_used, totals.week_held, totals.plan_changed),
      ('month', totals.month_starts_at, totals.month_ends_at, totals.month_used, totals.month_held, totals.plan_changed),
      ('extra', totals.month_starts_at, totals.month_ends_at, totals.extra_used, totals.extra_held, totals.extra_changed)
    ) changed (k, s, e, u, h, yes)
    where yes
    on conflict (organization_id, kind, starts_at) do update set used = excluded.used, held = excluded.held;
  end $$;

create function usage_save_account(organization uuid, running_now bigint, session_at timestamptz) returns void
  language plpgsql volatile
  as $$
  begin
    insert into usage_account (organization_id, running, session_starts_at)
    values (organization, running_now, session_at)
    on conflict (organization_id) do update
      set running = excluded.running, session_starts_at = excluded.session_starts_at;
  end $$;

create function usage_cost(
  input bigint, cached_input bigint, cache_write bigint, output bigint,
  price_input bigint, price_cached_input bigint, price_cache_write bigint, price_output bigint
) returns bigint
  language sql immutable parallel safe
  as $$
    select input * price_input + cached_input * price_cached_input + cache_write * price_cache_write
      + output * price_output
  $$;

-- One batch: settles, then grows, then admits, organization by organization, each seeing those before it; checkpoints
-- last. A request id may stand in a batch once. A refusal is an answer and fails nothing.
-- The settings keep it on the indexes: planned while its tables are empty, it would read them whole ever after.
create function usage_batch(
  admits usage_admit[], grows usage_grow[], checkpoints usage_checkpoint[], settles usage_settle[], charge_holds boolean
) returns setof usage_answer
  language plpgsql volatile
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
  as $$
  declare
    clock timestamptz;
    step record;
    admit usage_admit;
    grow usage_grow;
    settle usage_settle;
    hold usage_hold;
    owner uuid;
    owned record;
    running bigint;
    running_before bigint;
    session_at timestamptz;
    session_before timestamptz;
    totals usage_totals;
    reply usage_answer;
    room bigint;
    extra_room bigint;
    units_whole bigint;
    units_least bigint;
    new_holds usage_hold[] := '{}';
    new_records usage_record[] := '{}';
    ended uuid[] := '{}';
    grown uuid[] := '{}';
    grown_units bigint[] := '{}';
    extended integer[];
  begin
    perform usage_lock(array(
      select c.organization_id from unnest(admits) c union all select c.organization_id from unnest(grows) c
      union all select c.organization_id from unnest(checkpoints) c union all select c.organization_id from unnest(settles) c
    ));
    -- Only now: a clock read before the wait could stand before what others did meanwhile.
    clock := store_now();

    for step in
      select c.organization_id, 1 as phase, h.session_starts_at, h.week_starts_at, c.position,
        c as settle, null::usage_grow as grow, null::usage_admit as admit, h as hold,
        exists (select from usage_record r where r.request_id = c.request_id) as over
      from unnest(settles) c left join usage_hold h on h.request_id = c.request_id and h.organization_id = c.organization_id
      union all
      select c.organization_id, 2, h.session_starts_at, h.week_starts_at, c.position, null, c, null, h, false
      from unnest(grows) c left join usage_hold h on h.request_id = c.request_id and h.organization_id = c.organization_id
      union all
      select c.organization_id, 3, null, null, c.position, null, null, c, h,
        exists (select from usage_record r where r.request_id = c.request_id)
      from unnest(admits) c left join usage_hold h on h.request_id = c.request_id and h.organization_id = c.organization_id
      order by 1, 2, 3, 4, 5
    loop
      hold := step.hold;
      reply := null;
      reply.position := step.position;
      reply.at := clock;

      if owner is distinct from step.organization_id then
        if running <> running_before or session_at is distinct from session_before then
          perform usage_save_account(owner, running, session_at);
        end if;
        owner := step.organization_id;
        select a.running, a.session_starts_at, o.extra_usage_enabled, o.extra_usage_cap_units, d.* into owned
        from (select owner as id) i
        left join usage_account a on a.organization_id = i.id
        left join organization o on o.id = i.id
        left join lateral usage_calendar(i.id, clock) d on true;
        running_before := coalesce(owned.running, 0);
        running := running_before;
        session_before := owned.session_starts_at;
        session_at := session_before;
      end if;

      -- The windows that count for this command: those of its admission, else those of now.
      if hold.request_id is null then
        hold.session_starts_at := case
          when session_at + interval '5 hours' > clock then session_at else date_trunc('milliseconds', clock) end;
        hold.session_ends_at := hold.session_starts_at + interval '5 hours';
        hold.week_starts_at := owned.week_starts_at;
        hold.week_ends_at := owned.week_ends_at;
        hold.month_starts_at := owned.month_starts_at;
        hold.month_ends_at := owned.month_ends_at;
      end if;
      if totals.organization_id is distinct from owner
        or totals.session_starts_at is distinct from hold.session_starts_at
        or totals.week_starts_at is distinct from hold.week_starts_at
        or totals.month_starts_at is distinct from hold.month_starts_at
      then
        if totals.plan_changed or totals.extra_changed then
          perform usage_save(totals);
        end if;
        totals := usage_totals_of(owner, hold.session_starts_at, hold.session_ends_at,
          hold.week_starts_at, hold.week_ends_at, hold.month_starts_at, hold.month_ends_at);
      end if;

      if step.phase = 1 then
        settle := step.settle;
        if step.over or (settle.recover and (hold.request_id is null or hold.lease_until > clock)) then
          reply.answer := case when step.over then 'already' else 'running' end;
          return next reply;
          continue;
        end if;
        if hold.request_id is null then
          -- Given up before its admission was answered: the record keeps an admission that comes late from running.
          new_records := new_records || row(
            settle.request_id, owner, settle.key_id, settle.operation, settle.model, settle.stream,
            settle.price_input, settle.price_cached_input, settle.price_cache_write, settle.price_output,
            'plan', 0, 0, settle.units, clock, clock, settle.outcome, settle.stopped_by, settle.error_code, false,
            settle.input_tokens, settle.cached_input_tokens, settle.cache_write_tokens, settle.output_tokens,
            settle.reasoning_tokens, settle.usage_source,
            null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
            settle.upstream, settle.attempts, settle.first_part_ms
          )::usage_record;
          reply.answer := 'settled';
          reply.charged := 0;
          reply.uncharged := settle.units;
          return next reply;
          continue;
        end if;
        if settle.recover then
          settle.input_tokens := hold.input_tokens;
          settle.cached_input_tokens := hold.cached_input_tokens;
          settle.cache_write_tokens := hold.cache_write_tokens;
          settle.output_tokens := hold.produced_tokens;
          settle.reasoning_tokens := hold.reasoning_tokens;
          settle.usage_source := hold.usage_source;
          settle.session_limit := hold.session_limit;
          settle.week_limit := hold.week_limit;
          settle.month_limit := hold.month_limit;
          settle.units := case when charge_holds then hold.units else least(1000000000000000, usage_cost(
            hold.input_tokens, hold.cached_input_tokens, hold.cache_write_tokens, hold.produced_tokens,
            hold.price_input, hold.price_cached_input, hold.price_cache_write, hold.price_output)) end;
        end if;
        -- What every limit leaves, without what others hold; but what was granted is not taken back for their holds
        -- where a limit was lowered meanwhile. Null does not limit, and least() passes nulls by.
        if hold.source = 'plan' then
          room := least(
            settle.session_limit - totals.session_used - greatest(0,
              least(totals.session_held - hold.units, settle.session_limit - totals.session_used - hold.units)),
            settle.week_limit - totals.week_used - greatest(0,
              least(totals.week_held - hold.units, settle.week_limit - totals.week_used - hold.units)),
            settle.month_limit - totals.month_used - greatest(0,
              least(totals.month_held - hold.units, settle.month_limit - totals.month_used - hold.units)));
        else
          room := owned.extra_usage_cap_units - totals.extra_used - greatest(0,
            least(totals.extra_held - hold.units, owned.extra_usage_cap_units - totals.extra_used - hold.units));
        end if;
        reply.answer := 'settled';
        reply.charged := greatest(0, least(settle.units, room));
        reply.uncharged := settle.units - reply.charged;
        if hold.source = 'plan' then
          totals.session_used := totals.session_used + reply.charged;
          totals.week_used := totals.week_used + reply.charged;
          totals.month_used := totals.month_used + reply.charged;
          totals.session_held := totals.session_held - hold.units;
          totals.week_held := totals.week_held - hold.units;
          totals.month_held := totals.month_held - hold.units;
          totals.plan_changed := true;
        else
          totals.extra_used := totals.extra_used + reply.charged;
          totals.extra_held := totals.extra_held - hold.units;
          totals.extra_changed := true;
        end if;
        running := running - 1;
        ended := ended || hold.request_id;
        new_records := new_records || row(
          hold.request_id, owner, hold.key_id, hold.operation, hold.model, hold.stream,
          hold.price_input, hold.price_cached_input, hold.price_cache_write, hold.price_output,
          hold.source, hold.units, reply.charged, reply.uncharged, hold.admitted_at, clock,
          case when settle.recover then 'failed' else settle.outcome end, settle.stopped_by,
          case when settle.recover then 'internal_error' else settle.error_code end, coalesce(settle.recover, false),
          settle.input_tokens, settle.cached_input_tokens, settle.cache_write_tokens, settle.output_tokens,
          settle.reasoning_tokens, settle.usage_source,
          hold.session_starts_at, hold.session_ends_at, hold.session_limit, hold.session_used, totals.session_used,
          hold.week_starts_at, hold.week_ends_at, hold.week_limit, hold.week_used, totals.week_used,
          hold.month_starts_at, hold.month_ends_at, hold.month_limit, hold.month_used, totals.month_used,
          settle.upstream, settle.attempts, settle.first_part_ms
        )::usage_record;

      elsif step.phase = 2 then
        grow := step.grow;
        if hold.request_id is null then
          reply.answer := 'gone';
          return next reply;
          continue;
        end if;
        if hold.source = 'plan' then
          room := least(
            grow.session_limit - totals.session_used - totals.session_held,
            grow.week_limit - totals.week_used - totals.week_held,
            grow.month_limit - totals.month_used - totals.month_held);
        else
          room := case when owned.extra_usage_enabled
            then owned.extra_usage_cap_units - totals.extra_used - totals.extra_held else 0 end;
        end if;
        reply.units := greatest(hold.units, least(grow.units_total, hold.units + room));
        if reply.units < grow.units_total_min then
          reply.answer := 'full';
          reply.units := null;
          return next reply;
          continue;
        end if;
        reply.answer := 'granted';
        if reply.units > hold.units then
          if hold.source = 'plan' then
            totals.session_held := totals.session_held + reply.units - hold.units;
            totals.week_held := totals.week_held + reply.units - hold.units;
            totals.month_held := totals.month_held + reply.units - hold.units;
            totals.plan_changed := true;
          else
            totals.extra_held := totals.extra_held + reply.units - hold.units;
            totals.extra_changed := true;
          end if;
          grown := grown || hold.request_id;
          grown_units := grown_units || reply.units;
        end if;

      else
        admit := step.admit;
        reply.session_starts_at := hold.session_starts_at;
        reply.session_ends_at := hold.session_ends_at;
        reply.session_used := totals.session_used;
        reply.session_held := totals.session_held;
        reply.week_starts_at := hold.week_starts_at;
        reply.week_ends_at := hold.week_ends_at;
        reply.week_used := totals.week_used;
        reply.week_held := totals.week_held;
        reply.month_starts_at := hold.month_starts_at;
        reply.month_ends_at := hold.month_ends_at;
        reply.month_used := totals.month_used;
        reply.month_held := totals.month_held;
        reply.extra_enabled := owned.extra_usage_enabled;
        reply.extra_cap := owned.extra_usage_cap_units;
        reply.extra_used := totals.extra_used;
        reply.extra_held := totals.extra_held;

        if step.over or hold.week_starts_at is null then
          reply.answer := case when step.over then 'over' else 'unknown' end;
        elsif hold.request_id is not null then
          -- Granted before; that answer was lost. Its own hold is not part of what it saw.
          reply.answer := 'granted';
          reply.units := hold.units;
          reply.output_tokens := hold.output_tokens;
          reply.source := hold.source;
          reply.session_used := hold.session_used;
          reply.week_used := hold.week_used;
          reply.month_used := hold.month_used;
          if hold.source = 'plan' then
            reply.session_held := reply.session_held - hold.units;
            reply.week_held := reply.week_held - hold.units;
            reply.month_held := reply.month_held - hold.units;
          end if;
        else
          units_whole := admit.input_units + admit.output_tokens * admit.price_output;
          units_least := admit.input_units + admit.output_tokens_min * admit.price_output;
          -- A room of null is without bounds.
          room := least(
            admit.session_limit - totals.session_used - totals.session_held,
            admit.week_limit - totals.week_used - totals.week_held,
            admit.month_limit - totals.month_used - totals.month_held);
          extra_room := owned.extra_usage_cap_units - totals.extra_used - totals.extra_held;
          if coalesce(units_whole <= room, true) then
            reply.source := 'plan';
          elsif owned.extra_usage_enabled and coalesce(units_whole <= extra_room, true) then
            reply.source := 'extra';
          elsif units_least <= room then
            reply.source := 'plan';
          elsif owned.extra_usage_enabled and units_least <= extra_room then
            reply.source := 'extra';
          end if;
          if reply.source is null then
            -- Full of settled use, or only of what others hold for the moment, the extra usage included?
            reply.answer := case
              when coalesce(units_least <= least(
                admit.session_limit - totals.session_used,
                admit.week_limit - totals.week_used,
                admit.month_limit - totals.month_used), true) then 'reserved'
              when owned.extra_usage_enabled and units_least <= owned.extra_usage_cap_units - totals.extra_used
                then 'reserved'
              else 'exhausted' end;
          elsif running >= admit.concurrent_limit then
            reply.answer := 'concurrency';
            reply.source := null;
          else
            room := case reply.source when 'plan' then room else extra_room end;
            reply.answer := 'granted';
            reply.output_tokens := case when coalesce(units_whole <= room, true) then admit.output_tokens
              else (room - admit.input_units) / admit.price_output end;
            reply.units := admit.input_units + reply.output_tokens * admit.price_output;
            if reply.source = 'plan' then
              totals.session_held := totals.session_held + reply.units;
              totals.week_held := totals.week_held + reply.units;
              totals.month_held := totals.month_held + reply.units;
              totals.plan_changed := true;
              session_at := hold.session_starts_at;
            else
              totals.extra_held := totals.extra_held + reply.units;
              totals.extra_changed := true;
            end if;
            running := running + 1;
            new_holds := new_holds || row(
              admit.request_id, owner, admit.key_id, admit.operation, admit.model, admit.stream,
              admit.price_input, admit.price_cached_input, admit.price_cache_write, admit.price_output,
              reply.source, reply.units, reply.output_tokens, clock, clock + admit.lease_ms * interval '1 millisecond',
              hold.session_starts_at, hold.session_ends_at, admit.session_limit, reply.session_used,
              hold.week_starts_at, hold.week_ends_at, admit.week_limit, reply.week_used,
              hold.month_starts_at, hold.month_ends_at, admit.month_limit, reply.month_used,
              0, 0, 0, 0, 0, 0, 'counted'
            )::usage_hold;
          end if;
        end if;
      end if;
      return next reply;
    end loop;

    if totals.plan_changed or totals.extra_changed then
      perform usage_save(totals);
    end if;
    if running <> running_before or session_at is distinct from session_before then
      perform usage_save_account(owner, running, session_at);
    end if;
    if cardinality(new_records) > 0 then
      insert into usage_record select * from unnest(new_records);
      delete from usage_hold where request_id = any (ended);
    end if;
    if cardinality(grown) > 0 then
      update usage_hold set units = g.units from unnest(grown, grown_units) g (id, units) where request_id = g.id;
    end if;
    if cardinality(new_holds) > 0 then
      insert into usage_hold select * from unnest(new_holds);
    end if;

    if cardinality(checkpoints) > 0 then
      -- Counts only rise, and one that was overtaken on its way changes none of them.
      with extension as (
        update usage_hold h set
          lease_until = greatest(h.lease_until, clock + c.lease_ms * interval '1 millisecond'),
          checkpoint = greatest(h.checkpoint, c.number),
          input_tokens = case when c.number > h.checkpoint then c.input_tokens else h.input_tokens end,
          cached_input_tokens = case when c.number > h.checkpoint then c.cached_input_tokens else h.cached_input_tokens end,
          cache_write_tokens = case when c.number > h.checkpoint then c.cache_write_tokens else h.cache_write_tokens end,
          produced_tokens = greatest(h.produced_tokens, c.output_tokens),
          reasoning_tokens = greatest(h.reasoning_tokens, c.reasoning_tokens),
          usage_source = case when c.number > h.checkpoint then c.usage_source else h.usage_source end
        from unnest(checkpoints) c
        where h.request_id = c.request_id and h.organization_id = c.organization_id
        returning c.position
      )
      select array_agg(extension.position) into extended from extension;
      for step in select c.position from unnest(checkpoints) c loop
        reply := null;
        reply.position := step.position;
        reply.at := clock;
        reply.answer := case when step.position = any (extended) then 'extended' else 'gone' end;
        return next reply;
      end loop;
    end if;
  end $$;

-- Settles holds whose lease has lapsed, at their last checkpoint or, with `charge_holds`, as if all that was held had
-- been used. Any node may do it; the lease is looked at again under the lock.
create function usage_recover(most integer, charge_holds boolean) returns integer
  language plpgsql volatile
  as $$
  declare
    clock timestamptz := store_now();
    lapsed usage_settle[];
    settled integer;
  begin
    lapsed := array(
      select jsonb_populate_record(null::usage_settle, jsonb_build_object(
        'position', row_number() over (), 'request_id', h.request_id, 'organization_id', h.organization_id,
        'recover', true))
      from (select * from usage_hold where lease_until <= clock order by lease_until limit most) h
    );
    if cardinality(lapsed) = 0 then
      return 0;
    end if;
    select count(*) into settled from usage_batch(null, null, null, lapsed, usage_recover.charge_holds) r
    where r.answer = 'settled';
    return settled;
  end $$;

-- The windows of now and their totals, for reading. An idle session is five hours from now, unused.
create function usage_windows(organization uuid) returns usage_answer
  language plpgsql volatile
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  as $$
  declare
    clock timestamptz := store_now();
    calendar record;
    session_at timestamptz;
    totals usage_totals;
    reply usage_answer;
  begin
    select * into calendar from usage_calendar(organization, clock);
    if not found then
      return null;
    end if;
    select a.session_starts_at into session_at from usage_account a
    where a.organization_id = organization and a.session_starts_at + interval '5 hours' > clock;
    session_at := coalesce(session_at, date_trunc('milliseconds', clock));
    totals := usage_totals_of(organization, session_at, session_at + interval '5 hours',
      calendar.week_starts_at, calendar.week_ends_at, calendar.month_starts_at, calendar.month_ends_at);
    reply.at := clock;
    reply.session_starts_at := totals.session_starts_at;
    reply.session_ends_at := totals.session_ends_at;
    reply.session_used := totals.session_used;
    reply.session_held := totals.session_held;
    reply.week_starts_at := totals.week_starts_at;
    reply.week_ends_at := totals.week_ends_at;
    reply.week_used := totals.week_used;
    reply.week_held := totals.week_held;
    reply.month_starts_at := totals.month_starts_at;
    reply.month_ends_at := totals.month_ends_at;
    reply.month_used := totals.month_used;
    reply.month_held := totals.month_held;
    select o.extra_usage_enabled, o.extra_usage_cap_units into reply.extra_enabled, reply.extra_cap
    from organization o where o.id = organization;
    reply.extra_used := totals.extra_used;
    reply.extra_held := totals.extra_held;
    return reply;
  end $$;

-- A compensating entry, by an operator: a record of no request that adds to one window of now, or takes from it, down to
-- nothing. Boundaries stay. Answers what was added; null: no such organization, or no session is open. Done once per id.
create function usage_adjust(entry_id uuid, organization uuid, window_kind usage_window_kind, units bigint) returns bigint
  language plpgsql volatile
  as $$
  declare
    clock timestamptz;
    windows usage_answer;
    added bigint;
  begin
    perform usage_lock(array[organization]);
    clock := store_now();
    select r.charged into added from usage_record r where r.request_id = entry_id;
    if found then
      return added;
    end if;
    windows := usage_windows(organization);
    if windows.at is null or (window_kind = 'session' and not exists (
      select from usage_window w where w.organization_id = organization and w.kind = 'session' and w.starts_at = windows.session_starts_at
    )) then
      return null;
    end if;
    added := greatest(units, -case window_kind when 'session' then windows.session_used when 'week' then windows.week_used
      when 'month' then windows.month_used else windows.extra_used end);
    insert into usage_record (
      request_id, organization_id, operation, model, stream, price_input, price_cached_input, price_cache_write, price_output,
      source, held, charged, uncharged, admitted_at, ended_at, outcome, recovered,
      input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, usage_source,
      session_starts_at, session_ends_at, week_starts_at, week_ends_at, month_starts_at, month_ends_at
    )
    select entry_id, organization, 'adjustment', '', false, 0, 0, 0, 0,
      case window_kind when 'extra' then 'extra'::usage_billing else 'plan' end, 0, added, 0, clock, clock, 'completed', false,
      0, 0, 0, 0, 0, 'counted',
      case when window_kind = 'session' then windows.session_starts_at end, case when window_kind = 'session' then windows.session_ends_at end,
      case when window_kind = 'week' then windows.week_starts_at end, case when window_kind = 'week' then windows.week_ends_at end,
      case when window_kind in ('month', 'extra') then windows.month_starts_at end,
      case when window_kind in ('month', 'extra') then windows.month_ends_at end;
    insert into usage_window as w (organization_id, kind, starts_at, ends_at, used, held)
    select organization, window_kind,
      case window_kind when 'session' then windows.session_starts_at when 'week' then windows.week_starts_at else windows.month_starts_at end,
      case window_kind when 'session' then windows.session_ends_at when 'week' then windows.week_ends_at else windows.month_ends_at end,
      added, 0
    on conflict (organization_id, kind, starts_at) do update set used = w.used + excluded.used;
    return added;
  end $$;

-- The least id that a node makes at `at` or later.
create function usage_record_id(at timestamptz) returns uuid
  language sql immutable parallel safe
  as $$ select rpad(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0'), 32, '0')::uuid $$;

-- The book against itself: each total beside the sum it must equal, where they differ. Windows whose records may have
-- been dropped by now are left out. `running` compares the count of open requests. With `begun_after` only windows that
-- began after it are compared, and of the records only those are read whose ids are not older by more than an hour.
create function usage_differences(begun_after timestamptz default null)
  returns table (organization_id uuid, kind text, starts_at timestamptz,
    used bigint, recorded bigint, held bigint, holding bigint)
  language sql stable
  as $$
    with since as (select coalesce(begun_after, store_now() - interval '12 months') as at),
    entries as (
      select r.organization_id, w.kind, w.starts_at, r.charged as recorded, 0::bigint as holding
      from usage_record r
      cross join lateral (values
        ('session'::usage_window_kind, r.session_starts_at), ('week', r.week_starts_at), ('month', r.month_starts_at),
        ('extra', r.month_starts_at)
      ) w (kind, starts_at)
      where r.request_id >= coalesce(usage_record_id(begun_after - interval '1 hour'), '00000000-0000-0000-0000-000000000000')
        and (r.source = 'extra') = (w.kind = 'extra') and w.starts_at is not null
      union all
      select h.organization_id, w.kind, w.starts_at, 0, h.units
      from usage_hold h
      cross join lateral (values
        ('session'::usage_window_kind, h.session_starts_at), ('week', h.week_starts_at), ('month', h.month_starts_at),
        ('extra', h.month_starts_at)
      ) w (kind, starts_at)
      where (h.source = 'extra') = (w.kind = 'extra')
    ),
    sums as (
      select e.organization_id, e.kind, e.starts_at, sum(e.recorded)::bigint as recorded, sum(e.holding)::bigint as holding
      from entries e group by 1, 2, 3
    )
    select coalesce(w.organization_id, s.organization_id), coalesce(w.kind, s.kind)::text, coalesce(w.starts_at, s.starts_at),
      coalesce(w.used, 0), coalesce(s.recorded, 0), coalesce(w.held, 0), coalesce(s.holding, 0)
    from usage_window w
    full join sums s on s.organization_id = w.organization_id and s.kind = w.kind and s.starts_at = w.starts_at
    cross join since
    where coalesce(w.starts_at, s.starts_at) > since.at
      and (coalesce(w.used, 0) <> coalesce(s.recorded, 0) or coalesce(w.held, 0) <> coalesce(s.holding, 0))
    union all
    select coalesce(a.organization_id, h.organization_id), 'running', null, 0, 0, coalesce(a.running, 0), coalesce(h.count, 0)
    from usage_account a
    full join (select o.organization_id, count(*) as count from usage_hold o group by 1) h on h.organization_id = a.organization_id
    where coalesce(a.running, 0) <> coalesce(h.count, 0)
  $$;

-- Makes the partitions of this month and of those to come, moves out of the default one what belongs in them, and drops
-- those whose every record is older than what is kept. Answers the names of what it made and dropped (with a minus).
-- Safe beside running batches, and beside itself.
create function usage_partitions(months_to_come integer default 3, months_kept integer default 13) returns setof text
  language plpgsql volatile
  as $$
  declare
    this_month timestamp := date_trunc('month', store_now() at time zone 'UTC');
    month timestamp;
    next_month timestamp;
    partition text;
    old record;
  begin
    perform pg_advisory_xact_lock(hashtextextended('usage_partitions', 0));
    for ahead in 0..months_to_come loop
      month := this_month + make_interval(months => ahead);
      next_month := month + interval '1 month';
      partition := 'usage_record_' || to_char(month, 'YYYY_MM');
      continue when to_regclass(partition) is not null;
      execute format('create table %I (like usage_record including all)', partition);
      execute format(
        'with moved as (delete from usage_record_default where request_id >= %2$L and request_id < %3$L returning *)
         insert into %1$I select * from moved',
        partition, usage_record_id(month at time zone 'UTC'), usage_record_id(next_month at time zone 'UTC'));
      execute format('alter table usage_record attach partition %I for values from (%L) to (%L)',
        partition, usage_record_id(month at time zone 'UTC'), usage_record_id(next_month at time zone 'UTC'));
      return next partition;
    end loop;
    for old in
      select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'usage_record'::regclass and c.relname ~ '^usage_record_[0-9]{4}_[0-9]{2}$'
        and to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month'
          <= (store_now() at time zone 'UTC') - make_interval(months => months_kept)
    loop
      execute format('drop table %I', old.name);
      return next '-' || old.name;
    end loop;
    delete from usage_record_default where ended_at < store_now() - make_interval(months => months_kept);
    delete from usage_window where ends_at < store_now() - make_interval(months => months_kept + 1);
  end $$;

select usage_partitions();
