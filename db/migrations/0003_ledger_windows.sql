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

-- When a node made an id, by its clock.
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
-- looks only in later statements: a look in the statement that takes the lock would see what was before the wait. Answers
-- the clock, read after the wait: one of before could stand before what others did meanwhile.
create function usage_lock(organizations uuid[]) returns timestamptz
  language plpgsql
  as $$
  begin
    if current_setting('transaction_isolation') <> 'read committed' then
      raise exception 'the ledger works in READ COMMITTED alone, and this transaction is %',
        upper(current_setting('transaction_isolation')) using errcode = 'invalid_transaction_state';
    end if;
    perform pg_advisory_xact_lock(lock)
    from (select distinct uuid_hash_extended(id, 0) as lock from unnest(organizations) id order by 1 offset 0) l;
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

-- The windows in force: each from the row of now or, where that has another, from the past, to which a clock that was set
-- back returns. An idle session is five hours from now, and not open. Of an organization that does not exist there is
-- neither week nor month.
create function usage_in_force(organization uuid, at timestamptz)
  returns table (
    running bigint, is_open boolean, starts_at timestamptz[], ends_at timestamptz[], used bigint[], held bigint[]
  )
  language sql stable
  as $$
    select coalesce(n.running, 0), s.is_open or bool_or(p.kind is not null and w.kind = 'session'), f.starts_at, f.ends_at,
      array_agg(case when w.was_at = w.starts_at then w.used else coalesce(p.used, 0) end order by w.kind),
      array_agg(case when w.was_at = w.starts_at then w.held else coalesce(p.held, 0) end order by w.kind)
    from (select 1) one
    left join lateral (
      select * from usage_now n where n.subject_id = organization order by n.generation desc limit 1
    ) n on true
    left join lateral (select o.anchor_at from organization o where o.id = organization offset 0) o on true
    cross join lateral (select * from usage_calendar(organization, o.anchor_at, at) offset 0) c
    cross join lateral (select coalesce(n.ends_at[1] > at, false) as is_open offset 0) s
    cross join lateral (
      select
        array[case when s.is_open then n.starts_at[1] else at end,
          c.week_starts_at, c.month_starts_at, c.month_starts_at] as starts_at,
        array[case when s.is_open then n.ends_at[1] else at + interval '5 hours' end,
          c.week_ends_at, c.month_ends_at, c.month_ends_at] as ends_at
      offset 0
    ) f
    cross join lateral unnest(enum_range(null::usage_window_kind), f.starts_at, n.starts_at, n.used, n.held)
      w (kind, starts_at, was_at, used, held)
    left join lateral (
      select * from usage_past p
      where p.subject_id = organization and p.kind = w.kind and p.starts_at = w.starts_at offset 0
    ) p on w.was_at is distinct from w.starts_at
    group by n.running, s.is_open, f.starts_at, f.ends_at
  $$;

-- The same, for whoever only reads.
create view usage_window_now as
  select o.id as organization_id, w.kind, w.starts_at, w.ends_at, w.used, w.held,
    n.running, o.extra_usage_enabled as extra_enabled, o.extra_usage_cap_units as extra_cap_units, clock.at
  from organization o
  cross join lateral (select store_now() as at offset 0) clock
  cross join lateral usage_in_force(o.id, clock.at) n
  cross join lateral unnest(enum_range(null::usage_window_kind), n.starts_at, n.ends_at, n.used, n.held)
    w (kind, starts_at, ends_at, used, held);

-- What a batch works on. The n-th of the organizations has the n-th element of the arrays up to `is_changed`, and the n-th
-- row of the others, which has its windows in force in the order of their kinds. Behind these, `used` and `held` have a
-- row for each window of the past that a hold was admitted in; it stands in the column of its kind. Behind the
-- organizations stand their limited teams and keys, if the batch has any (migration 0013): `parents` has the place of their
-- organization, `limits` and `concurrent` what they may use. `keys` are those of admissions that are limited or in a team,
-- and `teams` their teams.
create type usage_book as (
  organizations uuid[], generations bigint[], updates integer[], running bigint[], extra_enabled boolean[],
  extra_caps bigint[], has_subjects boolean[], is_open boolean[], is_changed boolean[],
  starts_at timestamptz[], ends_at timestamptz[], used bigint[], held bigint[], past usage_past[],
  parents integer[], limits bigint[], concurrent bigint[], keys uuid[], teams uuid[]
);

-- Finds the windows in force of an owner whose row of now has another or none, and moves what is no longer in force to
-- the past, and what is out of there. The row itself is written with the batch.
create function usage_roll(owner integer, clock timestamptz, inout book usage_book)
  language plpgsql volatile
  as $$
  declare
    kinds usage_window_kind[] := enum_range(null::usage_window_kind);
    subject uuid := book.organizations[owner];
    now record;
  begin
    select * into now from usage_in_force(subject, clock);
    for k in 1..4 loop
      if book.starts_at[owner][k] <> now.starts_at[k] then
        insert into usage_past values (
          subject, kinds[k], book.starts_at[owner][k], book.ends_at[owner][k], book.used[owner][k], book.held[owner][k]
        )
        on conflict (subject_id, kind, starts_at) do update set used = excluded.used, held = excluded.held;
        book.is_changed[owner] := true;
      end if;
      if book.starts_at[owner][k] is distinct from now.starts_at[k] then
        delete from usage_past p where p.subject_id = subject and p.kind = kinds[k] and p.starts_at = now.starts_at[k];
        book.is_changed[owner] := book.is_changed[owner] or found;
      end if;
      book.starts_at[owner][k] := now.starts_at[k];
      book.ends_at[owner][k] := now.ends_at[k];
      book.used[owner][k] := now.used[k];
      book.held[owner][k] := now.held[k];
    end loop;
    book.is_open[owner] := now.is_open;
  end $$;

-- Reads what a batch works on, under the locks of its organizations. A window that is open stays what it is, also under a
-- new anchor: while all of a row are, nothing is calculated.
create function usage_load(named uuid[], clock timestamptz) returns usage_book
  language plpgsql volatile
  as $$
  declare
    book usage_book;
  begin
    -- Put in order once, and not by each aggregate.
    select named, array_agg(i.generation), array_agg(coalesce(i.updates, 0)), array_agg(coalesce(i.running, 0)),
      array_agg(i.extra_usage_enabled), array_agg(i.extra_usage_cap_units), array_agg(i.has_subjects),
      array_agg(coalesce(i.ends_at[1] > clock and least(i.ends_at[2], i.ends_at[3]) > clock
        and greatest(i.starts_at[2], i.starts_at[3]) <= clock, false)),
      array_agg(false),
      array_agg(coalesce(i.starts_at, array_fill(null::timestamptz, array[4]))),
      array_agg(coalesce(i.ends_at, array_fill(null::timestamptz, array[4]))),
      array_agg(coalesce(i.used, '{0,0,0,0}')), array_agg(coalesce(i.held, '{0,0,0,0}')), '{}', null, null, null, null, null
    into book
    from (
      select n.*, o.extra_usage_enabled, o.extra_usage_cap_units, o.has_subjects
      from unnest(named) with ordinality i (id, position)
      left join lateral (
        select * from usage_now n where n.subject_id = i.id order by n.generation desc limit 1
      ) n on true
      left join lateral (select * from organization o where o.id = i.id offset 0) o on true
      order by i.position
    ) i;
    for owner in 1..cardinality(named) loop
      if not book.is_open[owner] then
        book := usage_roll(owner, clock, book);
      end if;
    end loop;
    return book;
  end $$;

-- Where the windows of an owner stand that a hold was admitted in: for each kind a row of `used` and `held`. Those that are
-- not in force are read here, once.
create function usage_locate(
  request uuid, owner integer, inout book usage_book, inout used bigint[], inout held bigint[], out places integer[]
)
  language plpgsql stable
  as $$
  declare
    kinds usage_window_kind[] := enum_range(null::usage_window_kind);
    hold usage_hold := (select h from usage_hold h where h.request_id = request);
    starts timestamptz[] := array[hold.session_starts_at, hold.week_starts_at, hold.month_starts_at, hold.month_starts_at];
    ends timestamptz[] := array[hold.session_ends_at, hold.week_ends_at, hold.month_ends_at, hold.month_ends_at];
    place integer;
    total usage_past;
  begin
    places := array_fill(owner, array[4]);
    for k in 1..4 loop
      continue when starts[k] = book.starts_at[owner][k];
      place := (
        select p.place from unnest(book.past) with ordinality p (subject_id, kind, starts_at, ends_at, used, held, place)
        where p.subject_id = book.organizations[owner] and p.kind = kinds[k] and p.starts_at = starts[k]);
      if place is null then
        select book.organizations[owner], kinds[k], starts[k], ends[k], coalesce(sum(p.used), 0), coalesce(sum(p.held), 0)
        into total from usage_past p
        where p.subject_id = book.organizations[owner] and p.kind = kinds[k] and p.starts_at = starts[k];
        book.past := book.past || total;
        used := used || array_fill(total.used, array[4]);
        held := held || array_fill(total.held, array[4]);
        place := cardinality(book.past);
      end if;
      places[k] := cardinality(book.organizations) + place;
    end loop;
  end $$;

-- Writes what a batch has changed.
create function usage_save(book usage_book) returns void
  language plpgsql volatile
  as $$
  declare
    owners integer := cardinality(book.organizations);
    is_open boolean;
    starts timestamptz[];
    ends timestamptz[];
  begin
    for n in 1..owners loop
      continue when not book.is_changed[n];
      is_open := book.is_open[coalesce(book.parents[n], n)];
      starts := array[case when is_open then book.starts_at[n][1] end,
        book.starts_at[n][2], book.starts_at[n][3], book.starts_at[n][4]];
      ends := array[case when is_open then book.ends_at[n][1] end,
        book.ends_at[n][2], book.ends_at[n][3], book.ends_at[n][4]];
      if book.updates[n] < 32 then
        update usage_now set updates = updates + 1, running = book.running[n], starts_at = starts, ends_at = ends,
          used = array[book.used[n][1], book.used[n][2], book.used[n][3], book.used[n][4]], held = array[book.held[n][1], book.held[n][2], book.held[n][3], book.held[n][4]]
        where subject_id = book.organizations[n] and generation = book.generations[n];
        continue when found;
      end if;
      insert into usage_now values (
        book.organizations[n], coalesce(book.generations[n], 0) + 1, 0, book.running[n], starts, ends,
        array[book.used[n][1], book.used[n][2], book.used[n][3], book.used[n][4]], array[book.held[n][1], book.held[n][2], book.held[n][3], book.held[n][4]]);
      delete from usage_now where subject_id = book.organizations[n] and generation = book.generations[n];
    end loop;
    if cardinality(book.past) > 0 then
      insert into usage_past
      select p.subject_id, p.kind, p.starts_at, p.ends_at, t.used, t.held
      from unnest(book.past) with ordinality p (subject_id, kind, starts_at, ends_at, used, held, place)
      cross join lateral (
        select book.used[owners + p.place][k] as used, book.held[owners + p.place][k] as held
        from array_position(enum_range(null::usage_window_kind), p.kind) k
      ) t
      where (t.used, t.held) <> (p.used, p.held)
      on conflict (subject_id, kind, starts_at) do update set used = excluded.used, held = excluded.held;
    end if;
  end $$;
