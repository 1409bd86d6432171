-- The limits of keys and teams beside their organization's plan (docs/design/usage.md, Budgets). A key or a team that is
-- limited is a subject of the ledger as its organization is: it has counters of its own, on the organization's
-- boundaries and under the organization's lock. Null does not limit, in all of these tables.

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

-- False until the first key is limited or put into a team: a batch then looks for neither.
alter table organization add column has_subjects boolean not null default false;

-- Adds to the state of a batch the limited keys and teams of its admissions and of the holds of its other requests. Their
-- windows are those of their organization.
create function usage_load_subjects(named_keys uuid[], requests uuid[], inout book usage_book)
  language plpgsql volatile
  as $$
  declare
    organizations integer := cardinality(book.subjects);
    ids uuid[];
    own usage_book;
    parent integer;
  begin
    select array_agg(s.subject_id), array_agg(s.team_id) into book.keys, book.teams
    from (select distinct k.id from unnest(named_keys) k (id) offset 0) k
    cross join lateral (select * from usage_subject s where s.subject_id = k.id offset 0) s
    where s.organization_id = any (book.subjects);
    ids := array(
      select unnest(book.keys) union select unnest(book.teams) union
      select unnest(h.subjects) from unnest(requests) r (id)
      cross join lateral (select o.subjects from usage_hold o where o.request_id = r.id offset 0) h);
    if ids = '{}' then
      return;
    end if;

    select array_agg(i.subject_id), array_agg(i.parent), array_agg(i.generation), array_agg(coalesce(i.updates, 0)),
      array_agg(coalesce(i.running, 0)), array_agg(i.concurrent_requests), null, null, null, array_agg(false),
      usage_concat(coalesce(i.starts_at, array_fill(null::timestamptz, array[4]))),
      usage_concat(coalesce(i.ends_at, array_fill(null::timestamptz, array[4]))),
      usage_concat(coalesce(i.used, '{0,0,0,0}')), usage_concat(coalesce(i.held, '{0,0,0,0}')),
      -- No total beyond 2^53 - 1 could be read exactly.
      usage_concat(array[coalesce(i.session_units, 9007199254740991), coalesce(i.week_units, 9007199254740991),
        coalesce(i.month_units, 9007199254740991), null]), null, null, null
    into own
    from (
      select s.*, n.generation, n.updates, n.running, n.starts_at, n.ends_at, n.used, n.held,
        array_position(book.subjects, s.organization_id) as parent
      from unnest(ids) i (id)
      cross join lateral (
        select * from usage_subject s where s.subject_id = i.id and s.counted_from is not null offset 0
      ) s
      left join lateral (
        select * from usage_now n where n.subject_id = i.id order by n.generation desc limit 1
      ) n on true
      order by i.id
    ) i;
    if own.subjects is null then
      return;
    end if;

    book.subjects := book.subjects || own.subjects;
    book.parents := array_fill(null::integer, array[organizations]) || own.parents;
    book.generations := book.generations || own.generations;
    book.updates := book.updates || own.updates;
    book.running := book.running || own.running;
    book.concurrent := array_fill(null::bigint, array[organizations]) || own.concurrent;
    book.is_changed := book.is_changed || own.is_changed;
    book.starts_at := book.starts_at || own.starts_at;
    book.ends_at := book.ends_at || own.ends_at;
    book.used := book.used || own.used;
    book.held := book.held || own.held;
    book.limits := book.limits || own.limits;
    for subject in organizations + 1..cardinality(book.subjects) loop
      parent := 4 * book.parents[subject];
      book := usage_roll(subject, book.starts_at[parent - 3:parent], book.ends_at[parent - 3:parent], book);
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
    hold record;
    located record;
    -- The team of a key that is limited already is in the book too.
    place integer;
  begin
    update usage_subject s set counted_from = clock where s.subject_id = subject;
    book := usage_load_subjects(array[subject], '{}', book);
    place := array_position(book.subjects, subject);
    for hold in
      select h.request_id, h.units from usage_hold h
      where h.organization_id = organization and (h.key_id = subject or h.team_id = subject)
    loop
      located := usage_locate(hold.request_id, array[4 * place - 3, 4 * place - 2, 4 * place - 1], book.used, book.held, book);
      book := located.book;
      book.used := located.used;
      book.held := located.held;
      for i in 1..3 loop
        book.held[located.counters[i]] := book.held[located.counters[i]] + hold.units;
      end loop;
      book.running[place] := book.running[place] + 1;
    end loop;
    update usage_hold h set subjects = coalesce(h.subjects, '{}') || subject
    where h.organization_id = organization and (h.key_id = subject or h.team_id = subject);
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
    place := array_position(book.subjects, subject);
    foreach opening in array openings loop
      insert into usage_opening select opening.*;
      insert into usage_tally as t values (opening.subject_id, opening.kind, opening.starts_at, opening.ends_at, opening.units, 0)
      on conflict (subject_id, kind, starts_at) do update set recorded = t.recorded + excluded.recorded;
      k := 4 * place - 4 + array_position(enum_range(null::usage_window_kind), opening.kind);
      if book.starts_at[k] = opening.starts_at then
        book.used[k] := book.used[k] + opening.units;
      else
        insert into usage_past as p values (opening.subject_id, opening.kind, opening.starts_at, opening.ends_at, opening.units, 0)
        on conflict (subject_id, kind, starts_at) do update set used = p.used + excluded.used;
      end if;
    end loop;
    book.is_changed[place] := true;
    perform usage_save(book);
    -- Its limits are what they were, and yet there is less room.
    perform usage_limits_changed(subject);
    return true;
  end $$;

-- The limits and the use of a key and then of its team: a row for each that is limited.
create function usage_subjects_now(organization uuid, key uuid)
  returns table (
    subject_id uuid, is_team boolean, session_units bigint, week_units bigint, month_units bigint,
    concurrent_requests bigint, running bigint,
    starts_at timestamptz[], ends_at timestamptz[], used bigint[], held bigint[], at timestamptz
  )
  language sql stable
  as $$
    select s.subject_id, s.subject_id <> key, s.session_units, s.week_units, s.month_units,
      s.concurrent_requests, t.running, f.starts_at, f.ends_at, t.used, t.held, clock.at
    from (select store_now() as at offset 0) clock
    cross join lateral (
      select key as id union all select t.team_id from usage_subject t where t.subject_id = key offset 0
    ) i
    cross join lateral (
      select * from usage_subject s where s.subject_id = i.id and s.organization_id = organization
        and coalesce(s.session_units, s.week_units, s.month_units, s.concurrent_requests) is not null offset 0
    ) s
    cross join lateral (select * from usage_windows_at(organization, clock.at) offset 0) f
    cross join lateral (select * from usage_totals(s.subject_id, f.starts_at) offset 0) t
    order by 2
  $$;
