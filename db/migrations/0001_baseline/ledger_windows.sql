-- Which windows count at an instant, what stands in them, and the lock under which all of it changes.
--
-- What a batch calls is PL/pgSQL, which keeps its plans, or a table of SQL, which Postgres inlines. Tables are joined by
-- `lateral (… offset 0)`: the planner then looks rows up by their key one by one, whatever the statistics say. Left to
-- itself it reads a whole index, dead entries included, once it has counted a table while it was nearly empty
-- (test/stores/postgres/plans.test.ts).

-- The least id that a node makes at `at` or later.
create function usage_record_id(at timestamptz) returns uuid
  language sql immutable parallel safe
  as $$ select rpad(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0'), 32, '0')::uuid $$;

-- The instant at which a node made an ID, by its clock.
create function usage_record_time(id uuid) returns timestamptz
  language sql immutable parallel safe
  as $$ select 'epoch'::timestamptz + ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint * interval '1 millisecond' $$;

-- Windows are functions of anchor and instant. UTC throughout; hours and not days, so that no zone's summer time counts.

create function usage_week(anchor_at timestamptz, at timestamptz) returns table (starts_at timestamptz, ends_at timestamptz)
  language sql immutable parallel safe
  as $$
    select w.starts_at, w.starts_at + interval '168 hours'
    from (select anchor_at + floor(extract(epoch from at - anchor_at) / 604800) * interval '168 hours') w (starts_at)
  $$;

-- Counted from the anchor itself, never from the month before: the day is clamped afresh (31 January, 28 February,
-- 31 March).
create function usage_month(anchor_at timestamptz, at timestamptz) returns table (starts_at timestamptz, ends_at timestamptz)
  language sql immutable parallel safe
  as $$
    select (u.origin + make_interval(months => b.months)) at time zone 'UTC',
      (u.origin + make_interval(months => b.months + 1)) at time zone 'UTC'
    from (select anchor_at at time zone 'UTC', at at time zone 'UTC') u (origin, moment)
    cross join lateral (
      select ((date_part('year', u.moment) - date_part('year', u.origin)) * 12
        + date_part('month', u.moment) - date_part('month', u.origin))::integer
    ) m (months)
    cross join lateral (
      select case when u.origin + make_interval(months => m.months) > u.moment then m.months - 1 else m.months end
    ) b (months)
  $$;

-- The week and the month that an organization is in whose own anchor is `first_anchor_at`; null bounds without one. An
-- anchor that counts from a later month on counts for weeks no earlier, so that the latest month decides both.
create function usage_calendar(organization uuid, first_anchor_at timestamptz, at timestamptz)
  returns table (week_starts_at timestamptz, week_ends_at timestamptz, month_starts_at timestamptz, month_ends_at timestamptz)
  language sql stable
  as $$
    select greatest(week.starts_at, weekly.week_from), week.ends_at,
      greatest(month.starts_at, monthly.month_from), month.ends_at
    from (select 1) one
    left join lateral (
      select a.anchor_at, a.week_from from usage_anchor a
      where a.organization_id = organization and a.week_from <= at order by a.month_from desc limit 1
    ) weekly on true
    left join lateral (
      select a.anchor_at, a.month_from from usage_anchor a
      where a.organization_id = organization and a.month_from <= at order by a.month_from desc limit 1
    ) monthly on true
    cross join lateral usage_week(coalesce(weekly.anchor_at, first_anchor_at), at) week
    cross join lateral usage_month(coalesce(monthly.anchor_at, first_anchor_at), at) month
  $$;

-- All that changes what an organization used takes this lock first, for several organizations in ascending order, and
-- looks only in later statements: a look in the statement that takes the lock would see what was before the wait. One lock
-- is taken by an expression, which costs less than a statement. Answers the clock, read after the wait: one of before
-- could stand before what others did meanwhile.
create function usage_lock(organizations uuid[]) returns timestamptz
  language plpgsql
  as $$
  declare
    taken text;
  begin
    if current_setting('transaction_isolation') <> 'read committed' then
      raise exception 'the ledger works in READ COMMITTED alone, and this transaction is %',
        upper(current_setting('transaction_isolation')) using errcode = 'invalid_transaction_state';
    end if;
    if cardinality(organizations) = 1 then
      taken := pg_advisory_xact_lock(uuid_hash_extended(organizations[1], 0));
    else
      perform pg_advisory_xact_lock(lock)
      from (select distinct uuid_hash_extended(id, 0) as lock from unnest(organizations) id order by 1 offset 0) l;
    end if;
    return store_now();
  end $$;

-- A new anchor takes effect when the running month ends; one that was not yet in effect is replaced. Answers when.
create function usage_set_anchor(organization uuid, anchor timestamptz) returns timestamptz
  language plpgsql
  as $$
  declare
    first_anchor_at timestamptz;
    at timestamptz;
    effective_at timestamptz;
    week record;
  begin
    at := usage_lock(array[organization]);
    select o.anchor_at into first_anchor_at from organization o where o.id = organization;
    if not found then
      return null;
    end if;
    delete from usage_anchor where organization_id = organization and month_from > at;
    select c.month_ends_at into effective_at from usage_calendar(organization, first_anchor_at, at) c;
    select c.week_starts_at as starts_at, c.week_ends_at as ends_at into week
    from usage_calendar(organization, first_anchor_at, effective_at) c;
    insert into usage_anchor (organization_id, month_from, week_from, anchor_at) values (
      organization, effective_at,
      case when week.starts_at = effective_at then effective_at else week.ends_at end,
      date_trunc('milliseconds', anchor)
    );
    return effective_at;
  end $$;

-- The windows of an organization at an instant, in the order of their kinds. An idle session is five hours from then, and not
-- open. An organization that does not exist has neither week nor month.
create function usage_windows_at(organization uuid, at timestamptz)
  returns table (is_open boolean, starts_at timestamptz[], ends_at timestamptz[])
  language sql stable
  as $$
    select s.is_open,
      array[case when s.is_open then n.starts_at[1] else at end, c.week_starts_at, c.month_starts_at, c.month_starts_at],
      array[case when s.is_open then n.ends_at[1] else at + interval '5 hours' end,
        c.week_ends_at, c.month_ends_at, c.month_ends_at]
    from (select 1) one
    left join lateral (
      select * from usage_now n where n.subject_id = organization order by n.generation desc limit 1
    ) n on true
    left join lateral (select o.anchor_at from organization o where o.id = organization offset 0) o on true
    cross join lateral (select * from usage_calendar(organization, o.anchor_at, at) offset 0) c
    cross join lateral (select coalesce(n.ends_at[1] > at, false) as is_open offset 0) s
  $$;

-- Whether the session is open and the week and the month are those of now, by a row's bounds.
create function usage_is_open(starts timestamptz[], ends timestamptz[], clock timestamptz) returns boolean
  language sql immutable
  as $$
    select coalesce(ends[1] > clock and least(ends[2], ends[3]) > clock and greatest(starts[2], starts[3]) <= clock, false)
  $$;

-- The totals of a subject in four windows: each from its live row or, where that has another window, from the past, to
-- which a clock that was set back returns.
create function usage_totals(subject uuid, starts timestamptz[])
  returns table (running bigint, used bigint[], held bigint[])
  language sql stable
  as $$
    select coalesce(n.running, 0),
      array_agg(case when w.was_at = w.starts_at then w.used else coalesce(p.used, 0) end order by w.kind),
      array_agg(case when w.was_at = w.starts_at then w.held else coalesce(p.held, 0) end order by w.kind)
    from (select 1) one
    left join lateral (
      select * from usage_now n where n.subject_id = subject order by n.generation desc limit 1
    ) n on true
    cross join lateral unnest(enum_range(null::usage_window_kind), starts, n.starts_at, n.used, n.held)
      w (kind, starts_at, was_at, used, held)
    left join lateral (
      select * from usage_past p
      where p.subject_id = subject and p.kind = w.kind and p.starts_at = w.starts_at offset 0
    ) p on w.was_at is distinct from w.starts_at
    group by n.running
  $$;

-- The windows in force of each organization, for readers, with its own limits and its raise.
create view usage_window_now as
  select o.id as organization_id, w.kind, w.starts_at, w.ends_at, w.used, w.held,
    t.running, o.extra_usage_enabled as extra_enabled, o.extra_usage_cap_nanos as extra_cap_nanos, clock.at,
    o.own_limits[w.place] as own_nanos, o.own_limits[4] as own_requests, r.raised[w.place] as raised_nanos,
    r.raised[4] as raised_requests
  from organization o
  cross join lateral (select store_now() as at offset 0) clock
  cross join lateral (select * from usage_windows_at(o.id, clock.at) offset 0) f
  cross join lateral (select * from usage_totals(o.id, f.starts_at) offset 0) t
  left join lateral (
    select array[v.session_nanos, v.week_nanos, v.month_nanos, v.concurrent_requests] as raised
    from usage_raise_of(o.id, clock.at) v where o.raised_until > clock.at offset 0
  ) r on true
  cross join lateral unnest(enum_range(null::usage_window_kind), f.starts_at, f.ends_at, t.used, t.held, '{1,2,3,null}'::integer[])
    w (kind, starts_at, ends_at, used, held, place);
