-- The state that a batch of the ledger works on: read once, under the lock, and written once.

-- The state is made of arrays. `subjects` has the ids of the batch's organizations, and behind them those of their limited
-- teams, people and keys, and of the patterns of models of all of these. A subject's number is its index in this array.
-- - `parents`: the number of the organization to which a team, a person or a key belongs; null for an organization.
-- - `starts_at`, `ends_at`, `used`, `held`, `limits`: the *counters*. A subject has four, one for each kind of window:
--   those of subject n are the elements 4n - 3 to 4n. Behind these, `used` and `held` have an element for each window in
--   `past`.
-- - `concurrent`: the limits of requests at a time. This limit of an organization and the limits of its windows come with
--   each command, and are stored here while it is carried out. Its fourth limit is the cap of its extra usage.
-- - `past`: the past windows in which holds of the batch were admitted.
-- - `keys`: the keys of the batch's admissions that are limited, are in a team or belong to a person; `teams` are the keys'
--   teams and `members` their people.
-- - `has_models`: an organization of the batch has limits for models. For a subject that limits models, `models` has its
--   pattern and `parent_ids` the id of the subject to which it belongs.
-- - `is_raised`: a raise (a temporary increase of a limit) may be in force.
-- - `raised`, `own`: the raises of the organizations, and their own limits, which replace those of their plans. Both are
--   for the three windows and for requests at a time, at the indexes of the counters; null: no organization has any.
-- - `is_bridged`: a window of an organization may be shorter than others. `wholes` has the instant at which such a window
--   would have begun as a whole one, at the index of its counter; null: all windows are whole.
create type usage_book as (
  subjects uuid[], parents integer[], generations bigint[], updates integer[], running bigint[], concurrent bigint[],
  extra_enabled boolean[], has_subjects boolean[], is_open boolean[], is_changed boolean[],
  starts_at timestamptz[], ends_at timestamptz[], used bigint[], held bigint[], limits bigint[], past usage_past[],
  keys uuid[], teams uuid[], members uuid[], is_raised boolean, raised bigint[], own bigint[],
  is_bridged boolean, wholes timestamptz[],
  has_models boolean, models text[], parent_ids uuid[]
);

-- Joins the arrays of several rows into one array.
create aggregate usage_concat(bigint[]) (sfunc = array_cat, stype = bigint[]);
create aggregate usage_concat(timestamptz[]) (sfunc = array_cat, stype = timestamptz[]);
create aggregate usage_concat(uuid[]) (sfunc = array_cat, stype = uuid[]);

-- Gives a subject the windows in force: moves its other windows to usage_past, and brings back those from there that are in
-- force again. The subject's row is written with the batch. Extra usage is counted only for organizations.
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

-- Reads the state of organizations, under their locks. While all windows of a row are open, no windows are calculated, so
-- an open window stays as it is, even under a new anchor. Nearly every batch has a single organization, whose state is read
-- without aggregates: preparing these costs more than reading the rows.
create function usage_load(organizations uuid[], clock timestamptz) returns usage_book
  language plpgsql volatile
  as $$
  declare
    book usage_book;
    now record;
  begin
    if cardinality(organizations) = 1 then
      select organizations, null, array[n.generation], array[coalesce(n.updates, 0)], array[coalesce(n.running, 0)], null,
        array[o.extra_usage_enabled], array[o.has_subjects],
        array[usage_is_open(n.starts_at, n.ends_at, clock)],
        '{f}', coalesce(n.starts_at, '{null,null,null,null}'), coalesce(n.ends_at, '{null,null,null,null}'),
        coalesce(n.used, '{0,0,0,0}'), coalesce(n.held, '{0,0,0,0}'), array[null, null, null, o.extra_usage_cap_nanos],
        '{}', null, null, null, o.raised_until > clock, null, o.own_limits[1:4], o.bridged_until > clock, null,
        o.has_models, null, null
      into book
      from (select organizations[1] as id) i
      left join lateral (
        select * from usage_now n where n.subject_id = i.id order by n.generation desc limit 1
      ) n on true
      left join lateral (select * from organization o where o.id = i.id offset 0) o on true;
    else
      -- The rows are sorted once here, and not by each aggregate.
      select organizations, null, array_agg(i.generation), array_agg(coalesce(i.updates, 0)),
        array_agg(coalesce(i.running, 0)), null, array_agg(i.extra_usage_enabled), array_agg(i.has_subjects),
        array_agg(usage_is_open(i.starts_at, i.ends_at, clock)),
        array_fill(false, array[cardinality(organizations)]),
        usage_concat(coalesce(i.starts_at, array_fill(null::timestamptz, array[4]))),
        usage_concat(coalesce(i.ends_at, array_fill(null::timestamptz, array[4]))),
        usage_concat(coalesce(i.used, '{0,0,0,0}')), usage_concat(coalesce(i.held, '{0,0,0,0}')),
        usage_concat(array[null, null, null, i.extra_usage_cap_nanos]), '{}', null, null, null,
        bool_or(i.raised_until > clock), null,
        case when bool_or(i.own_limits is not null)
          then usage_concat(coalesce(i.own_limits[1:4], '{null,null,null,null}')) end,
        bool_or(i.bridged_until > clock), null, bool_or(i.has_models), null, null
      into book
      from (
        select n.*, o.extra_usage_enabled, o.extra_usage_cap_nanos, o.has_subjects, o.has_models, o.raised_until,
          o.bridged_until, o.own_limits
        from unnest(organizations) with ordinality i (id, position)
        left join lateral (
          select * from usage_now n where n.subject_id = i.id order by n.generation desc limit 1
        ) n on true
        left join lateral (select * from organization o where o.id = i.id offset 0) o on true
        order by i.position
      ) i;
    end if;
    for owner in 1..cardinality(organizations) loop
      continue when book.is_open[owner];
      select w.* into now from usage_windows_at(organizations[owner], clock) w;
      book.is_open[owner] := now.is_open;
      book := usage_roll(owner, now.starts_at, now.ends_at, book);
    end loop;
    return case when book.is_bridged then usage_bridge(book) else book end;
  end $$;

-- Adds to the state of a batch, for windows that are shorter than others, the instants at which they would have begun as
-- whole ones.
create function usage_bridge(inout book usage_book)
  language plpgsql stable
  as $$
  declare
    wholes timestamptz[];
    extra integer;
  begin
    for owner in 1..cardinality(book.extra_enabled) loop
      extra := 4 * owner;
      wholes := usage_wholes(book.subjects[owner], book.starts_at[extra - 3:extra], book.ends_at[extra - 3:extra]);
      continue when wholes is null;
      book.wholes := coalesce(book.wholes, array_fill(null::timestamptz, array[4 * cardinality(book.extra_enabled)]));
      book.wholes[extra - 3:extra] := wholes;
    end loop;
  end $$;

-- The limits in a batch's state, reduced to a share for windows that are shorter than others. The limits of organizations
-- are not among them, except the caps of extra usage.
create function usage_bounds(book usage_book) returns bigint[]
  language plpgsql immutable
  as $$
  declare
    bounds bigint[] := book.limits;
    owner integer;
  begin
    for n in 1..cardinality(book.subjects) loop
      owner := 4 * coalesce(book.parents[n], n) - 4;
      for k in 2..4 loop
        bounds[4 * n - 4 + k] := usage_in_proportion(bounds[4 * n - 4 + k], book.starts_at[owner + k],
          book.ends_at[owner + k], book.wholes[owner + k]);
      end loop;
    end loop;
    return bounds;
  end $$;

-- Finds the counters of the windows that a hold was admitted in. A counter stays if it is that of the hold's own window.
-- Otherwise it is replaced by that of the past window, which is read once and then kept in `past`.
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

-- Updates the rows of changed subjects in place, in a single statement. From nine subjects on, this costs less than a
-- statement for each. Leaves out subjects without a row, and those whose row was updated so often (32 times) that it must
-- be written anew.
create function usage_save_in_place(book usage_book) returns void
  language plpgsql volatile
  as $$
  declare
    ids uuid[] := book.subjects; parents integer[] := book.parents; generations bigint[] := book.generations;
    times integer[] := book.updates; now_running bigint[] := book.running;
    opened boolean[] := book.is_open; is_changed boolean[] := book.is_changed;
    starts timestamptz[] := book.starts_at; ends timestamptz[] := book.ends_at;
    now_used bigint[] := book.used; now_held bigint[] := book.held;
  begin
    update usage_now u set updates = u.updates + 1, running = now_running[s.n],
      starts_at = case when s.is_open then starts[s.last - 3:s.last] else null::timestamptz || starts[s.last - 2:s.last] end,
      ends_at = case when s.is_open then ends[s.last - 3:s.last] else null::timestamptz || ends[s.last - 2:s.last] end,
      used = now_used[s.last - 3:s.last], held = now_held[s.last - 3:s.last]
    from (
      -- Finds the row's place (ctid) by its key (usage_checkpoint says why).
      select n.n, 4 * n.n as last, opened[coalesce(parents[n.n], n.n)] as is_open, o.place
      from generate_subscripts(ids, 1) n (n)
      cross join lateral (
        select o.ctid as place from usage_now o where o.subject_id = ids[n.n] and o.generation = generations[n.n] offset 0
      ) o
      where is_changed[n.n] and times[n.n] < 32
    ) s
    where u.ctid = s.place;
  end $$;

-- Writes what a batch has changed.
create function usage_save(book usage_book) returns void
  language plpgsql volatile
  as $$
  declare
    counters integer := cardinality(book.starts_at);
    is_few boolean := cardinality(book.subjects) <= 8;
    before integer;
    starts timestamptz[];
    ends timestamptz[];
  begin
    if not is_few then
      perform usage_save_in_place(book);
    end if;
    for n in 1..cardinality(book.subjects) loop
      continue when not book.is_changed[n] or (not is_few and book.updates[n] < 32 and book.generations[n] is not null);
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
