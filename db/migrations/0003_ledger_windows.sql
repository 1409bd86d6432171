-- Which windows count at an instant, what stands in them, and the lock under which all of it changes.
--
-- What a batch calls is PL/pgSQL, which keeps its plans, or a table of SQL, which Postgres inlines. Tables are joined by
-- `lateral (… offset 0)`: the planner then looks rows up by their key one by one, whatever the statistics say. Left to
-- itself it reads a whole index, dead entries included, once it has counted a table while it was nearly empty
-- (test/postgres/plans.test.ts).

-- The least id that a node makes at `at` or later.
create function usage_record_id(at timestamptz) returns uuid
  language sql immutable parallel safe
  as $$ select rpad(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0'), 32, '0')::uuid $$;

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
    first_anchor_at timestamptz;
    at timestamptz;
    effective_at timestamptz;
    week record;
  begin
    perform usage_lock(array[organization]);
    at := store_now();
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

-- A window and its totals, as a batch works on them.
create type usage_total as (
  organization_id uuid, kind usage_window_kind, starts_at timestamptz, ends_at timestamptz,
  used bigint, held bigint, is_changed boolean
);

-- Four windows of an organization, in the order of their kinds; extra usage is counted by the month.
create function usage_totals(
  organization uuid, session_starts_at timestamptz, session_ends_at timestamptz,
  week_starts_at timestamptz, week_ends_at timestamptz, month_starts_at timestamptz, month_ends_at timestamptz
) returns setof usage_total
  language sql stable
  as $$
    select organization, n.kind, n.starts_at, n.ends_at, coalesce(w.used, 0), coalesce(w.held, 0), false
    from (values
      ('session'::usage_window_kind, session_starts_at, session_ends_at),
      ('week', week_starts_at, week_ends_at),
      ('month', month_starts_at, month_ends_at),
      ('extra', month_starts_at, month_ends_at)
    ) n (kind, starts_at, ends_at)
    left join lateral (
      select b.used, b.held from usage_window b
      where b.organization_id = organization and b.kind = n.kind and b.starts_at = n.starts_at offset 0
    ) w on true
  $$;

-- What an organization has open and allows, and which windows it is in. An idle session is five hours from now. Of an
-- organization that does not exist there is neither week nor month.
create function usage_now(organization uuid, at timestamptz)
  returns table (
    running bigint, extra_enabled boolean, extra_cap bigint,
    session_opened_at timestamptz, session_starts_at timestamptz, session_ends_at timestamptz,
    week_starts_at timestamptz, week_ends_at timestamptz, month_starts_at timestamptz, month_ends_at timestamptz
  )
  language sql stable
  as $$
    select coalesce(a.running, 0), o.extra_usage_enabled, o.extra_usage_cap_units,
      a.session_starts_at, s.starts_at, s.starts_at + interval '5 hours',
      c.week_starts_at, c.week_ends_at, c.month_starts_at, c.month_ends_at
    from (select 1) one
    left join lateral (
      select * from usage_account a where a.organization_id = organization offset 0
    ) a on true
    cross join lateral (
      select case when a.session_starts_at + interval '5 hours' > at then a.session_starts_at
        else date_trunc('milliseconds', at) end
    ) s (starts_at)
    left join lateral (select * from organization o where o.id = organization offset 0) o on true
    cross join lateral usage_calendar(organization, o.anchor_at, at) c
  $$;

-- The same, for whoever only reads.
create view usage_window_now as
  select o.id as organization_id, w.kind, w.starts_at, w.ends_at, w.used, w.held,
    n.running, n.extra_enabled, n.extra_cap as extra_cap_units, clock.at
  from organization o
  cross join lateral (select store_now() as at offset 0) clock
  cross join lateral usage_now(o.id, clock.at) n
  cross join lateral usage_totals(o.id, n.session_starts_at, n.session_ends_at,
    n.week_starts_at, n.week_ends_at, n.month_starts_at, n.month_ends_at) w;

-- Whose windows they are, as a batch works on it.
create type usage_owner as (
  organization_id uuid, running bigint, session_opened_at timestamptz,
  extra_enabled boolean, extra_cap bigint, is_changed boolean
);

-- What a batch reads of its organizations, under their locks: the owners in the given order, and four windows of each.
create function usage_load(organizations uuid[], at timestamptz, out owners usage_owner[], out windows usage_total[])
  language plpgsql stable
  as $$
  begin
    with now as (
      select i.id, i.position, n.*
      from unnest(organizations) with ordinality i (id, position)
      cross join lateral usage_now(i.id, at) n
    )
    select
      array(
        select row(n.id, n.running, n.session_opened_at, n.extra_enabled, n.extra_cap, false)::usage_owner
        from now n order by n.position),
      array(
        select w::usage_total from now n
        cross join lateral usage_totals(n.id, n.session_starts_at, n.session_ends_at,
          n.week_starts_at, n.week_ends_at, n.month_starts_at, n.month_ends_at) w
        order by n.position, w.kind)
    into owners, windows;
  end $$;

-- Where the windows stand that a hold was admitted in, in the order of kinds: nearly always among those of now, which
-- begin at `first`. Those of a request that runs on past the end of one are read here, and stand behind.
create function usage_locate(hold usage_hold, first integer, inout windows usage_total[], out places integer[])
  language plpgsql stable
  as $$
  begin
    if hold.session_starts_at = windows[first].starts_at and hold.week_starts_at = windows[first + 1].starts_at
      and hold.month_starts_at = windows[first + 2].starts_at
    then
      places := array[first, first + 1, first + 2, first + 3];
      return;
    end if;
    with wanted as (
      select w.* from usage_totals(hold.organization_id, hold.session_starts_at, hold.session_ends_at,
        hold.week_starts_at, hold.week_ends_at, hold.month_starts_at, hold.month_ends_at) w
    ), whole as (
      select windows || array(
        select w::usage_total from wanted w
        where not exists (
          select from unnest(windows) t
          where t.organization_id = w.organization_id and t.kind = w.kind and t.starts_at = w.starts_at)
      ) as totals
    )
    select whole.totals, array(
      select t.place from wanted w
      join unnest(whole.totals) with ordinality t (organization_id, kind, starts_at, ends_at, used, held, is_changed, place)
        on t.organization_id = w.organization_id and t.kind = w.kind and t.starts_at = w.starts_at
      order by w.kind)
    into windows, places from whole;
  end $$;

create function usage_save(owners usage_owner[], windows usage_total[]) returns void
  language plpgsql volatile
  as $$
  begin
    with saved as (
      insert into usage_window (organization_id, kind, starts_at, ends_at, used, held)
      select w.organization_id, w.kind, w.starts_at, w.ends_at, w.used, w.held from unnest(windows) w where w.is_changed
      on conflict (organization_id, kind, starts_at) do update set used = excluded.used, held = excluded.held
    )
    insert into usage_account (organization_id, running, session_starts_at)
    select o.organization_id, o.running, o.session_opened_at from unnest(owners) o where o.is_changed
    on conflict (organization_id) do update
      set running = excluded.running, session_starts_at = excluded.session_starts_at;
  end $$;
