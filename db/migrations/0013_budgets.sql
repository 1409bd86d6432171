-- What keys and teams may use beside their organization's plan (docs/design/usage.md, Budgets). A key or a team that is
-- limited is a subject of the ledger as its organization is, with counters of its own on the organization's boundaries,
-- under the organization's lock. Null does not limit, in all of these tables.

-- A named group of keys in an organization. One that was removed stays: records name it. Of those that were not, a name
-- stands once: whoever writes holds the organization's row.
create table team (
  id uuid primary key,
  organization_id uuid not null references organization (id),
  name text not null,
  created_at timestamptz not null default store_now(),
  removed_at timestamptz
);
create index team_of_organization on team (organization_id, name);

-- The limits that a new key gets: of a team or of an organization.
create table key_default (
  owner_id uuid primary key,
  session_units bigint check (session_units >= 1),
  week_units bigint check (week_units >= 1),
  month_units bigint check (month_units >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1)
);

-- Whose limits changed: of an organization (its extra usage; its plan stands in `plan`), a team or a key, and as which
-- change of all. The numbers rise in the order of commits, for the head's row is their lock: a node that has read up to one
-- of them has missed none before it (docs/design/usage.md, Limits that change).
create table limit_change_head (
  is_one boolean primary key default true check (is_one),
  number bigint not null
);
insert into limit_change_head (number) values (0);
create table limit_change (
  subject_id uuid primary key,
  number bigint not null
);
create index limit_change_by_number on limit_change (number);

-- Notes that and tells every node, with the commit. To it no other limit is changed: it comes last in what changes one.
create function usage_limits_changed(subject uuid) returns void
  language sql volatile
  as $$
    with head as (
      update limit_change_head set number = number + 1 returning number
    )
    insert into limit_change select subject, h.number from head h
    on conflict (subject_id) do update set number = excluded.number;
    select pg_notify('limits_changed', '')
  $$;

-- Until the first key is limited or put into a team, a batch looks for neither.
alter table organization add column has_subjects boolean not null default false;

-- Adds to the book of a batch the limited keys and teams of its admissions and of the holds of its other requests. Their
-- windows are the organization's; where their row of now has others, those move to the past.
create function usage_load_subjects(named_keys uuid[], requests uuid[], inout book usage_book)
  language plpgsql volatile
  as $$
  declare
    kinds usage_window_kind[] := enum_range(null::usage_window_kind);
    organizations integer := cardinality(book.organizations);
    found_keys record;
    ids uuid[];
    own record;
    parent integer;
    total record;
  begin
    select array_agg(s.subject_id) as keys, array_agg(s.team_id) as teams into found_keys
    from (select distinct k.id from unnest(named_keys) k (id) offset 0) k
    cross join lateral (select * from usage_subject s where s.subject_id = k.id offset 0) s
    where s.organization_id = any (book.organizations);
    book.keys := found_keys.keys;
    book.teams := found_keys.teams;
    ids := array(
      select unnest(book.keys) union select unnest(book.teams) union
      select unnest(h.subjects) from unnest(requests) r (id)
      cross join lateral (select o.subjects from usage_hold o where o.request_id = r.id offset 0) h);
    if ids = '{}' then
      return;
    end if;

    select array_agg(i.id order by i.id) as ids, array_agg(n.generation order by i.id) as generations,
      array_agg(coalesce(n.updates, 0) order by i.id) as updates, array_agg(coalesce(n.running, 0) order by i.id) as running,
      array_agg(coalesce(n.starts_at, array_fill(null::timestamptz, array[4])) order by i.id) as starts_at,
      array_agg(coalesce(n.ends_at, array_fill(null::timestamptz, array[4])) order by i.id) as ends_at,
      array_agg(coalesce(n.used, '{0,0,0,0}') order by i.id) as used,
      array_agg(coalesce(n.held, '{0,0,0,0}') order by i.id) as held,
      array_agg(array_position(book.organizations, s.organization_id) order by i.id) as parents,
      -- No total beyond 2^53 - 1 could be read exactly.
      array_agg(array[coalesce(s.session_units, 9007199254740991), coalesce(s.week_units, 9007199254740991),
        coalesce(s.month_units, 9007199254740991)] order by i.id) as limits,
      array_agg(s.concurrent_requests order by i.id) as concurrent
    into own
    from unnest(ids) i (id)
    cross join lateral (
      select * from usage_subject s where s.subject_id = i.id and s.counted_from is not null offset 0
    ) s
    left join lateral (
      select * from usage_now n where n.subject_id = i.id order by n.generation desc limit 1
    ) n on true;
    if own.ids is null then
      return;
    end if;

    book.organizations := book.organizations || own.ids;
    book.generations := book.generations || own.generations;
    book.updates := book.updates || own.updates;
    book.running := book.running || own.running;
    book.starts_at := book.starts_at || own.starts_at;
    book.ends_at := book.ends_at || own.ends_at;
    book.used := book.used || own.used;
    book.held := book.held || own.held;
    book.parents := array_fill(null::integer, array[organizations]) || own.parents;
    book.limits := array_fill(null::bigint, array[organizations, 3]) || own.limits;
    book.concurrent := array_fill(null::bigint, array[organizations]) || own.concurrent;
    for n in organizations + 1..cardinality(book.organizations) loop
      book.is_changed[n] := false;
      parent := book.parents[n];
      for k in 1..4 loop
        continue when book.starts_at[n][k] = book.starts_at[parent][k];
        if k < 4 then
          if book.starts_at[n][k] is not null then
            insert into usage_past values (
              book.organizations[n], kinds[k], book.starts_at[n][k], book.ends_at[n][k], book.used[n][k], book.held[n][k]
            )
            on conflict (subject_id, kind, starts_at) do update set used = excluded.used, held = excluded.held;
            book.is_changed[n] := true;
          end if;
          delete from usage_past p
          where p.subject_id = book.organizations[n] and p.kind = kinds[k] and p.starts_at = book.starts_at[parent][k]
          returning p.used, p.held into total;
          book.is_changed[n] := book.is_changed[n] or found;
          book.used[n][k] := coalesce(total.used, 0);
          book.held[n][k] := coalesce(total.held, 0);
        end if;
        book.starts_at[n][k] := book.starts_at[parent][k];
        book.ends_at[n][k] := book.ends_at[parent][k];
      end loop;
    end loop;
  end $$;

-- Puts a key into a team or out of it, and sets what a key or a team may use: three windows, and requests at a
-- time. In force when it is committed, for running requests too. What was never limited before is counted
-- from here on; what it had used before, `usage_sum_earlier` adds. Answers whether that is still to be done.
create function usage_set_subject(subject uuid, organization uuid, team uuid, limits bigint[]) returns boolean
  language plpgsql volatile
  as $$
  declare
    is_limited boolean := coalesce(limits[1], limits[2], limits[3], limits[4]) is not null;
    was usage_subject;
  begin
    update organization o set has_subjects = true where o.id = organization and not o.has_subjects;
    perform usage_lock(array[organization]);
    insert into usage_subject as s values (
      subject, organization, team, limits[1], limits[2], limits[3], limits[4], null, null
    )
    on conflict (subject_id) do update set team_id = excluded.team_id, session_units = excluded.session_units,
      week_units = excluded.week_units, month_units = excluded.month_units,
      concurrent_requests = excluded.concurrent_requests
    returning s.* into was;
    if is_limited and was.counted_from is null then
      perform usage_begin_counting(subject, organization);
    end if;
    perform usage_limits_changed(subject);
    if is_limited and was.counted_from is null then
      return true;
    end if;
    return was.counted_from is not null and was.summed_at is null;
  end $$;

-- Running requests of a key or a team that is limited for the first time count in it from now on. Under the lock.
create function usage_begin_counting(subject uuid, organization uuid) returns void
  language plpgsql volatile
  as $$
  declare
    clock timestamptz := store_now();
    book usage_book := usage_load(array[organization], clock);
    used bigint[];
    held bigint[];
    hold record;
    location record;
    -- The team of a key that is limited already is in the book too.
    place integer;
  begin
    update usage_subject s set counted_from = clock where s.subject_id = subject;
    book := usage_load_subjects(array[subject], '{}', book);
    place := array_position(book.organizations, subject);
    used := book.used;
    held := book.held;
    for hold in
      select h.request_id, h.units from usage_hold h
      where h.organization_id = organization and (h.key_id = subject or h.team_id = subject)
    loop
      location := usage_locate(hold.request_id, place, book, used, held);
      book := location.book;
      used := location.used;
      held := location.held;
      for k in 1..3 loop
        held[location.places[k]][k] := held[location.places[k]][k] + hold.units;
      end loop;
      book.running[place] := book.running[place] + 1;
    end loop;
    update usage_hold h set subjects = coalesce(h.subjects, '{}') || subject
    where h.organization_id = organization and (h.key_id = subject or h.team_id = subject);
    book.used := used;
    book.held := held;
    book.is_changed[place] := true;
    perform usage_save(book);
  end $$;

-- Adds what a key or a team had used of the windows in force before it was counted. Those records are read without a lock:
-- none is added to them any more. Done once; answers whether it was now.
create function usage_sum_earlier(subject uuid) returns boolean
  language plpgsql volatile
  as $$
  declare
    own usage_subject := (select s from usage_subject s where s.subject_id = subject);
    openings usage_opening[];
    opening usage_opening;
    book usage_book;
    k integer;
    place integer;
    used bigint[];
  begin
    if own.counted_from is null or own.summed_at is not null then
      return false;
    end if;
    openings := array(
      select row(subject, w.kind, w.starts_at, max(w.ends_at), sum(r.charged))::usage_opening
      from usage_record r
      cross join lateral (values
        ('session'::usage_window_kind, r.session_starts_at, r.session_ends_at), ('week', r.week_starts_at, r.week_ends_at),
        ('month', r.month_starts_at, r.month_ends_at)
      ) w (kind, starts_at, ends_at)
      where r.organization_id = own.organization_id and (r.key_id = subject or r.team_id = subject)
        and r.ended_at >= own.counted_from - interval '40 days' and w.ends_at > own.counted_from
        and (r.subjects is null or not subject = any (r.subjects))
      group by w.kind, w.starts_at having sum(r.charged) > 0);
    perform usage_lock(array[own.organization_id]);
    update usage_subject s set summed_at = store_now() where s.subject_id = subject and s.summed_at is null;
    if not found then
      return false;
    end if;
    book := usage_load_subjects(array[subject], '{}', usage_load(array[own.organization_id], store_now()));
    place := array_position(book.organizations, subject);
    used := book.used;
    foreach opening in array openings loop
      insert into usage_opening select opening.*;
      insert into usage_tally as t values (opening.subject_id, opening.kind, opening.starts_at, opening.ends_at, opening.units, 0)
      on conflict (subject_id, kind, starts_at) do update set recorded = t.recorded + excluded.recorded;
      k := array_position(enum_range(null::usage_window_kind), opening.kind);
      if book.starts_at[place][k] = opening.starts_at then
        used[place][k] := used[place][k] + opening.units;
      else
        insert into usage_past as p values (opening.subject_id, opening.kind, opening.starts_at, opening.ends_at, opening.units, 0)
        on conflict (subject_id, kind, starts_at) do update set used = p.used + excluded.used;
      end if;
    end loop;
    book.used := used;
    book.is_changed[place] := true;
    perform usage_save(book);
    -- Its limits are what they were, and yet there is less room.
    perform usage_limits_changed(subject);
    return true;
  end $$;

-- What a key and its team may use and have used, a row for each that is limited: the key first.
create function usage_subjects_now(organization uuid, key uuid)
  returns table (
    subject_id uuid, is_team boolean, session_units bigint, week_units bigint, month_units bigint,
    concurrent_requests bigint, running bigint,
    starts_at timestamptz[], ends_at timestamptz[], used bigint[], held bigint[], at timestamptz
  )
  language sql stable
  as $$
    select s.subject_id, s.subject_id <> key, s.session_units, s.week_units, s.month_units,
      s.concurrent_requests, coalesce(n.running, 0),
      f.starts_at, f.ends_at, w.used, w.held, clock.at
    from (select store_now() as at offset 0) clock
    cross join lateral (
      select key as id union all select t.team_id from usage_subject t where t.subject_id = key offset 0
    ) i
    cross join lateral (
      select * from usage_subject s where s.subject_id = i.id and s.organization_id = organization
        and coalesce(s.session_units, s.week_units, s.month_units, s.concurrent_requests) is not null offset 0
    ) s
    cross join lateral (select * from usage_in_force(organization, clock.at) offset 0) f
    left join lateral (
      select * from usage_now n where n.subject_id = s.subject_id order by n.generation desc limit 1
    ) n on true
    cross join lateral (
      select array_agg(case when n.starts_at[k.k] = f.starts_at[k.k] then n.used[k.k] else coalesce(p.used, 0) end order by k.k) as used,
        array_agg(case when n.starts_at[k.k] = f.starts_at[k.k] then n.held[k.k] else coalesce(p.held, 0) end order by k.k) as held
      from unnest(enum_range(null::usage_window_kind)) with ordinality k (kind, k)
      left join lateral (
        select * from usage_past p
        where p.subject_id = s.subject_id and p.kind = k.kind and p.starts_at = f.starts_at[k.k] offset 0
      ) p on true
      where k.k < 4
    ) w
    order by 2
  $$;
