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

-- The windows in force of each organization, for readers.
create view usage_window_now as
  select o.id as organization_id, w.kind, w.starts_at, w.ends_at, w.used, w.held,
    t.running, o.extra_usage_enabled as extra_enabled, o.extra_usage_cap_units as extra_cap_units, clock.at
  from organization o
  cross join lateral (select store_now() as at offset 0) clock
  cross join lateral (select * from usage_windows_at(o.id, clock.at) offset 0) f
  cross join lateral (select * from usage_totals(o.id, f.starts_at) offset 0) t
  cross join lateral unnest(enum_range(null::usage_window_kind), f.starts_at, f.ends_at, t.used, t.held)
    w (kind, starts_at, ends_at, used, held);

-- The state that a batch works on. `subjects` has the batch's organizations, and behind them their limited teams and keys, if
-- the batch has any; a place in it is the subject's number. `parents` has the number of the organization that
-- a team or a key is of; null: it is an organization. Each subject has four *counters*, one for each kind of window: those of subject n are the
-- elements 4n - 3 to 4n of `starts_at`, `ends_at`, `used`, `held` and `limits`. The limits of an organization's windows come
-- with each command and are null here; its fourth limit is the cap of its extra usage. Behind these, `used` and `held` have
-- an element for each window in `past`, which holds of the batch were admitted in. `keys` are the keys of admissions that
-- are limited or in a team, and `teams` their teams.
create type usage_book as (
  subjects uuid[], parents integer[], generations bigint[], updates integer[], running bigint[], concurrent bigint[],
  extra_enabled boolean[], has_subjects boolean[], is_open boolean[], is_changed boolean[],
  starts_at timestamptz[], ends_at timestamptz[], used bigint[], held bigint[], limits bigint[], past usage_past[],
  keys uuid[], teams uuid[]
);

-- The arrays of several rows as one.
create aggregate usage_concat(bigint[]) (sfunc = array_cat, stype = bigint[]);
create aggregate usage_concat(timestamptz[]) (sfunc = array_cat, stype = timestamptz[]);

-- Gives a subject the windows in force: moves those that are no longer in force to the past, and returns those that are in
-- force again. The subject's row is written with the batch. Extra usage is counted for organizations alone.
create function usage_roll(subject integer, starts timestamptz[], ends timestamptz[], inout book usage_book)
  language plpgsql volatile
  as $$
  declare
    kinds usage_window_kind[] := enum_range(null::usage_window_kind);
    id uuid := book.subjects[subject];
    before integer := 4 * subject - 4;
    total record;
  begin
    for k in 1..case when book.parents[subject] is null then 4 else 3 end loop
      continue when book.starts_at[before + k] = starts[k];
      if book.starts_at[before + k] <> starts[k] then
        insert into usage_past values (id, kinds[k], book.starts_at[before + k], book.ends_at[before + k],
          book.used[before + k], book.held[before + k])
        on conflict (subject_id, kind, starts_at) do update set used = excluded.used, held = excluded.held;
        book.is_changed[subject] := true;
      end if;
      delete from usage_past p where p.subject_id = id and p.kind = kinds[k] and p.starts_at = starts[k]
      returning p.used, p.held into total;
      book.is_changed[subject] := book.is_changed[subject] or found;
      book.is_open[subject] := book.is_open[subject] or (found and k = 1);
      book.used[before + k] := coalesce(total.used, 0);
      book.held[before + k] := coalesce(total.held, 0);
    end loop;
    book.starts_at[before + 1:before + 4] := starts;
    book.ends_at[before + 1:before + 4] := ends;
  end $$;

-- Reads the state of organizations, under their locks. A window that is open stays what it is, also under a new anchor: while
-- all of a row are, nothing is calculated.
create function usage_load(organizations uuid[], clock timestamptz) returns usage_book
  language plpgsql volatile
  as $$
  declare
    book usage_book;
    now record;
  begin
    -- Put in order once, and not by each aggregate.
    select organizations, null, array_agg(i.generation), array_agg(coalesce(i.updates, 0)),
      array_agg(coalesce(i.running, 0)), null, array_agg(i.extra_usage_enabled), array_agg(i.has_subjects),
      array_agg(coalesce(i.ends_at[1] > clock and least(i.ends_at[2], i.ends_at[3]) > clock
        and greatest(i.starts_at[2], i.starts_at[3]) <= clock, false)),
      array_fill(false, array[cardinality(organizations)]), usage_concat(coalesce(i.starts_at, array_fill(null::timestamptz, array[4]))),
      usage_concat(coalesce(i.ends_at, array_fill(null::timestamptz, array[4]))),
      usage_concat(coalesce(i.used, '{0,0,0,0}')), usage_concat(coalesce(i.held, '{0,0,0,0}')),
      usage_concat(array[null, null, null, i.extra_usage_cap_units]), '{}', null, null
    into book
    from (
      select n.*, o.extra_usage_enabled, o.extra_usage_cap_units, o.has_subjects
      from unnest(organizations) with ordinality i (id, position)
      left join lateral (
        select * from usage_now n where n.subject_id = i.id order by n.generation desc limit 1
      ) n on true
      left join lateral (select * from organization o where o.id = i.id offset 0) o on true
      order by i.position
    ) i;
    for owner in 1..cardinality(organizations) loop
      continue when book.is_open[owner];
      select w.* into now from usage_windows_at(organizations[owner], clock) w;
      book.is_open[owner] := now.is_open;
      book := usage_roll(owner, now.starts_at, now.ends_at, book);
    end loop;
    return book;
  end $$;

-- Puts the windows that a hold was admitted in into the place of those in force: for each of its counters one of these or,
-- read here once, of the past.
create function usage_locate(
  request uuid, inout counters integer[], inout used bigint[], inout held bigint[], inout book usage_book
)
  language plpgsql stable
  as $$
  declare
    kinds usage_window_kind[] := enum_range(null::usage_window_kind);
    hold usage_hold := (select h from usage_hold h where h.request_id = request);
    starts timestamptz[] := array[hold.session_starts_at, hold.week_starts_at, hold.month_starts_at, hold.month_starts_at];
    ends timestamptz[] := array[hold.session_ends_at, hold.week_ends_at, hold.month_ends_at, hold.month_ends_at];
    k integer;
    place integer;
    total usage_past;
  begin
    for i in 1..cardinality(counters) loop
      k := (counters[i] - 1) % 4 + 1;
      continue when starts[k] = book.starts_at[counters[i]];
      total := row(book.subjects[(counters[i] + 3) / 4], kinds[k], starts[k], ends[k], 0, 0);
      place := (
        select p.place from unnest(book.past) with ordinality p (subject_id, kind, starts_at, ends_at, used, held, place)
        where (p.subject_id, p.kind, p.starts_at) = (total.subject_id, total.kind, total.starts_at));
      if place is null then
        select coalesce(sum(p.used), 0), coalesce(sum(p.held), 0) into total.used, total.held from usage_past p
        where p.subject_id = total.subject_id and p.kind = total.kind and p.starts_at = total.starts_at;
        book.past := book.past || total;
        used := used || total.used;
        held := held || total.held;
        place := cardinality(book.past);
      end if;
      counters[i] := cardinality(book.starts_at) + place;
    end loop;
  end $$;

-- Writes what a batch has changed.
create function usage_save(book usage_book) returns void
  language plpgsql volatile
  as $$
  declare
    counters integer := cardinality(book.starts_at);
    before integer;
    starts timestamptz[];
    ends timestamptz[];
  begin
    for n in 1..cardinality(book.subjects) loop
      continue when not book.is_changed[n];
      before := 4 * n - 4;
      starts := book.starts_at[before + 1:before + 4];
      ends := book.ends_at[before + 1:before + 4];
      if not book.is_open[coalesce(book.parents[n], n)] then
        starts[1] := null;
        ends[1] := null;
      end if;
      if book.updates[n] < 32 then
        update usage_now set updates = updates + 1, running = book.running[n], starts_at = starts, ends_at = ends,
          used = book.used[before + 1:before + 4], held = book.held[before + 1:before + 4]
        where subject_id = book.subjects[n] and generation = book.generations[n];
        continue when found;
      end if;
      insert into usage_now values (
        book.subjects[n], coalesce(book.generations[n], 0) + 1, 0, book.running[n], starts, ends,
        book.used[before + 1:before + 4], book.held[before + 1:before + 4]);
      delete from usage_now where subject_id = book.subjects[n] and generation = book.generations[n];
    end loop;
    if cardinality(book.past) > 0 then
      insert into usage_past
      select p.subject_id, p.kind, p.starts_at, p.ends_at, book.used[counters + p.place], book.held[counters + p.place]
      from unnest(book.past) with ordinality p (subject_id, kind, starts_at, ends_at, used, held, place)
      where (book.used[counters + p.place], book.held[counters + p.place]) <> (p.used, p.held)
      on conflict (subject_id, kind, starts_at) do update set used = excluded.used, held = excluded.held;
    end if;
  end $$;
