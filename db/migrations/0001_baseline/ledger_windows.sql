-- Which windows count at an instant, what their totals are, and the lock under which all of it changes.
--
-- Functions that a batch calls are PL/pgSQL, which keeps its plans, or SQL that returns a table, which Postgres inlines.
-- Tables are joined by `lateral (… offset 0)`: the planner then looks rows up by their key one by one, whatever the
-- statistics say. Otherwise it reads a whole index, dead entries included, once the statistics of a table were taken while
-- it was nearly empty (test/stores/postgres/plans.test.ts).

-- The least id that a node makes at `at` or later.
create function usage_record_id(at timestamptz) returns uuid
  language sql immutable parallel safe
  as $$ select rpad(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0'), 32, '0')::uuid $$;

-- The instant at which a node made an ID, by its clock.
create function usage_record_time(id uuid) returns timestamptz
  language sql immutable parallel safe
  as $$ select 'epoch'::timestamptz + ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint * interval '1 millisecond' $$;

-- The week of the instant `at`. It depends only on the anchor and the instant. All times are UTC, and weeks are counted in
-- hours and not in days, so that no zone's summer time matters.

create function usage_week(anchor_at timestamptz, at timestamptz) returns table (starts_at timestamptz, ends_at timestamptz)
  language sql immutable parallel safe
  as $$
    select w.starts_at, w.starts_at + interval '168 hours'
    from (select anchor_at + floor(extract(epoch from at - anchor_at) / 604800) * interval '168 hours') w (starts_at)
  $$;

-- The month of the instant `at`. Months are counted from the anchor itself, never from the month before: the day is clamped
-- afresh (31 January, 28 February, 31 March).
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

-- The week and the month of an instant by an anchor or, with a zone, by a calendar.
create function usage_week_by(zone text, week_starts integer, anchor_at timestamptz, at timestamptz)
  returns table (starts_at timestamptz, ends_at timestamptz)
  language sql stable
  as $$
    select w.* from usage_week(anchor_at, at) w where zone is null
    union all select w.* from usage_local_week(zone, week_starts, at) w where zone is not null
  $$;

create function usage_month_by(zone text, month_starts integer, anchor_at timestamptz, at timestamptz)
  returns table (starts_at timestamptz, ends_at timestamptz)
  language sql stable
  as $$
    select m.* from usage_month(anchor_at, at) m where zone is null
    union all select m.* from usage_local_month(zone, month_starts, at) m where zone is not null
  $$;

-- The week and the month of an instant for an organization whose own anchor is `first_anchor_at`, and the zones by which
-- they are counted; without an anchor, the bounds are null. Of two anchors, the one that takes effect for months later
-- never takes effect for weeks earlier than the other. So for weeks, too, the anchor with the latest `month_from` decides.
create function usage_calendar(organization uuid, first_anchor_at timestamptz, at timestamptz)
  returns table (
    week_starts_at timestamptz, week_ends_at timestamptz, month_starts_at timestamptz, month_ends_at timestamptz,
    week_zone text, month_zone text
  )
  language sql stable
  as $$
    select case when at < weekly.week_to then weekly.week_from else greatest(week.starts_at, weekly.week_to) end,
      case when at < weekly.week_to then weekly.week_to else week.ends_at end,
      case when at < monthly.month_to then monthly.month_from else greatest(month.starts_at, monthly.month_to) end,
      case when at < monthly.month_to then monthly.month_to else month.ends_at end,
      weekly.zone, monthly.zone
    from (select 1) one
    left join lateral (
      select a.* from usage_anchor a
      where a.organization_id = organization and a.week_from <= at order by a.month_from desc limit 1
    ) weekly on true
    left join lateral (
      select a.* from usage_anchor a
      where a.organization_id = organization and a.month_from <= at order by a.month_from desc limit 1
    ) monthly on true
    cross join lateral usage_week_by(weekly.zone, weekly.week_starts, coalesce(weekly.anchor_at, first_anchor_at), at) week
    cross join lateral usage_month_by(monthly.zone, monthly.month_starts,
      coalesce(monthly.anchor_at, first_anchor_at), at) month
  $$;

-- The instant at which a window would have begun if the calendar had not changed during it; null: the window is whole.
create function usage_whole(organization uuid, kind usage_window_kind, starts timestamptz, ends timestamptz)
  returns timestamptz
  language sql stable
  as $$
    select case kind when 'week' then a.week_whole_at else a.month_whole_at end from usage_anchor a
    where a.organization_id = organization and case kind
      when 'session' then false
      when 'week' then (a.week_from, a.week_to) = (starts, ends)
      else (a.month_from, a.month_to) = (starts, ends) end
    order by a.month_from desc limit 1
  $$;

-- What `usage_whole` returns, for four windows; null: all of them are whole.
create function usage_wholes(organization uuid, starts timestamptz[], ends timestamptz[]) returns timestamptz[]
  language sql stable
  as $$
    select case when coalesce(w.week_at, w.month_at) is not null then array[null, w.week_at, w.month_at, w.month_at] end
    from (
      select usage_whole(organization, 'week', starts[2], ends[2]), usage_whole(organization, 'month', starts[3], ends[3])
    ) w (week_at, month_at)
  $$;

-- Locks organizations, in ascending order, and returns the clock, read after the wait: a time from before the wait could be
-- earlier than what others did meanwhile. Everything that changes what an organization used takes this lock first, and
-- reads only in later statements: a read in the statement that takes the lock would see the state before the wait. A single
-- lock is taken by an expression, which costs less than a statement.
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

-- Sets a new anchor, which takes effect when the running month ends; it replaces one that is not yet in effect. Returns
-- when it takes effect.
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
    week.starts_at := case when week.starts_at = effective_at then effective_at else week.ends_at end;
    insert into usage_anchor (organization_id, month_from, month_to, week_from, week_to, anchor_at) values (
      organization, effective_at, effective_at, week.starts_at, week.starts_at, date_trunc('milliseconds', anchor)
    );
    return effective_at;
  end $$;

-- Gives an organization a calendar, or takes it away (`new_zone` is null: weeks and months are then counted from the anchor).
-- If nothing was used yet, the new calendar takes effect immediately. Otherwise the running week and month end as they would
-- have. If the new calendar has no boundary at that instant, one shorter window reaches from there to its next boundary.
-- Returns when months begin to be counted by the new calendar. Null: another change is already under way; there can be one a
-- month at most.
create function usage_set_calendar(
  organization uuid, new_zone text, new_week_starts integer, new_month_starts integer
)
  returns timestamptz
  language plpgsql
  as $$
  declare
    at timestamptz := usage_lock(array[organization]);
    anchor timestamptz;
    running record;
    week record;
    month record;
    made usage_anchor;
  begin
    select coalesce((
      select a.anchor_at from usage_anchor a where a.organization_id = o.id order by a.month_from desc limit 1
    ), o.anchor_at) into anchor from organization o where o.id = organization;
    if not exists (select from usage_now n where n.subject_id = organization) then
      delete from usage_anchor a where a.organization_id = organization;
      insert into usage_anchor values (organization, '-infinity', '-infinity', anchor, new_zone, new_week_starts,
        new_month_starts, '-infinity', null, '-infinity', null);
      return at;
    end if;
    if exists (
      select from usage_anchor a where a.organization_id = organization and a.month_from > at
        and coalesce(a.zone, usage_zone(organization, at)) is not null
    ) then
      return null;
    end if;
    delete from usage_anchor a where a.organization_id = organization and a.month_from > at;
    select w.ends_at[2] as week_at, w.ends_at[3] as month_at into running from usage_windows_at(organization, at) w;
    select w.* into week from usage_week_by(new_zone, new_week_starts, anchor, running.week_at) w;
    select m.* into month from usage_month_by(new_zone, new_month_starts, anchor, running.month_at) m;
    insert into usage_anchor values (
      organization, running.month_at, running.week_at, anchor, new_zone, new_week_starts, new_month_starts,
      case when month.starts_at = running.month_at then running.month_at else month.ends_at end,
      nullif(month.starts_at, running.month_at),
      case when week.starts_at = running.week_at then running.week_at else week.ends_at end,
      nullif(week.starts_at, running.week_at)
    ) returning * into made;
    update organization o set bridged_until = greatest(o.bridged_until, made.month_to, made.week_to)
    where o.id = organization;
    return running.month_at;
  end $$;

-- The zone by which an organization's months are counted; null: they are counted from an anchor.
create function usage_zone(organization uuid, at timestamptz) returns text
  language sql stable
  as $$
    select a.zone from usage_anchor a where a.organization_id = organization and a.month_from <= at
    order by a.month_from desc limit 1
  $$;

-- Chooses the window of the instant `at` from two: the window by the zone's rules (`starts`, `ends`), and the one that was
-- opened last (`opened_at`, `closes_at`), which stays for as long as it is open.
create function usage_kept(
  zone text, opened_at timestamptz, closes_at timestamptz, starts timestamptz, ends timestamptz, at timestamptz
)
  returns table (starts_at timestamptz, ends_at timestamptz)
  language sql immutable
  as $$
    select case when k.is_open then opened_at when zone is not null and closes_at <= at then greatest(starts, closes_at)
      else starts end, case when k.is_open then closes_at else ends end
    from (select coalesce(zone is not null and opened_at <= at and at < closes_at, false)) k (is_open)
  $$;

-- The windows of an organization at an instant, in the order of their kinds. If no session is open, the session is the five
-- hours from the instant. An organization that does not exist has neither week nor month. By a calendar, an open window
-- keeps the bounds that it opened with, even if the rules of the zone have changed since, and the next window begins where
-- the open one ends.
create function usage_windows_at(organization uuid, at timestamptz)
  returns table (is_open boolean, starts_at timestamptz[], ends_at timestamptz[])
  language sql stable
  as $$
    select s.is_open,
      array[case when s.is_open then n.starts_at[1] else at end, week.starts_at, month.starts_at, month.starts_at],
      array[case when s.is_open then n.ends_at[1] else at + interval '5 hours' end,
        week.ends_at, month.ends_at, month.ends_at]
    from (select 1) one
    left join lateral (
      select * from usage_now n where n.subject_id = organization order by n.generation desc limit 1
    ) n on true
    left join lateral (select o.anchor_at from organization o where o.id = organization offset 0) o on true
    cross join lateral (select * from usage_calendar(organization, o.anchor_at, at) offset 0) c
    cross join lateral (select coalesce(n.ends_at[1] > at, false) as is_open offset 0) s
    cross join lateral usage_kept(c.week_zone, n.starts_at[2], n.ends_at[2], c.week_starts_at, c.week_ends_at, at) week
    cross join lateral usage_kept(c.month_zone, n.starts_at[3], n.ends_at[3], c.month_starts_at, c.month_ends_at, at) month
  $$;

-- Whether the windows with these bounds (session, week, month) are those of the instant `clock`: the session has not ended,
-- and week and month contain it.
create function usage_is_open(starts timestamptz[], ends timestamptz[], clock timestamptz) returns boolean
  language sql immutable
  as $$
    select coalesce(ends[1] > clock and least(ends[2], ends[3]) > clock and greatest(starts[2], starts[3]) <= clock, false)
  $$;

-- The totals of a subject in four windows. Each comes from the live row in usage_now or, if that has another window, from
-- usage_past: a clock that was set back returns to past windows.
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

-- The windows in force of each organization, for readers, with its own limits and its raise (a temporary increase of
-- limits). For a window that is shorter than others it also has the instant at which a whole one would have begun.
create view usage_window_now as
  select o.id as organization_id, w.kind, w.starts_at, w.ends_at, w.used, w.held,
    t.running, o.extra_usage_enabled as extra_enabled,
    usage_in_proportion(o.extra_usage_cap_nanos, f.starts_at[4], f.ends_at[4], b.wholes[4]) as extra_cap_nanos, clock.at,
    o.own_limits[w.place] as own_nanos, o.own_limits[4] as own_requests, r.raised[w.place] as raised_nanos,
    r.raised[4] as raised_requests, case when w.place > 1 then b.wholes[w.place] end as whole_at
  from organization o
  cross join lateral (select store_now() as at offset 0) clock
  cross join lateral (select * from usage_windows_at(o.id, clock.at) offset 0) f
  cross join lateral (select * from usage_totals(o.id, f.starts_at) offset 0) t
  left join lateral (
    select usage_wholes(o.id, f.starts_at, f.ends_at) as wholes where o.bridged_until > clock.at offset 0
  ) b on true
  left join lateral (
    select array[v.session_nanos, v.week_nanos, v.month_nanos, v.concurrent_requests] as raised
    from usage_raise_of(o.id, clock.at) v where o.raised_until > clock.at offset 0
  ) r on true
  cross join lateral unnest(enum_range(null::usage_window_kind), f.starts_at, f.ends_at, t.used, t.held, '{1,2,3,null}'::integer[])
    w (kind, starts_at, ends_at, used, held, place);
