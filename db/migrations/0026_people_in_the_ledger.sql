-- A person of an organization is a subject of the ledger between her keys and their teams (docs/design/usage.md, Budgets):
-- all her keys, sign-ins and identity tokens in that organization share its counters. She is one for as long as the
-- books are kept, whichever team she is in.

-- The subject of a person in an organization.
create function usage_member(organization uuid, person uuid) returns uuid
  language sql immutable
  as $$ select md5(organization::text || person::text)::uuid $$;

-- `person_id`: of a row that is a person. `member_id`: of a row that is a key, the subject of the person whose it is.
alter table usage_subject add column person_id uuid, add column member_id uuid;
create index usage_subject_of_member on usage_subject (member_id) where member_id is not null;
create index usage_subject_of_person on usage_subject (person_id) where person_id is not null;

-- The limits of a person, set by an administrator.
create table member_limit (
  organization_id uuid not null references organization (id) on delete cascade,
  person_id uuid not null references person (id),
  session_units bigint check (session_units >= 1),
  week_units bigint check (week_units >= 1),
  month_units bigint check (month_units >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1),
  requests_per_minute bigint check (requests_per_minute >= 1),
  tokens_per_minute bigint check (tokens_per_minute >= 1),
  primary key (organization_id, person_id)
);

-- The limits of each member without limits of her own: of a team or of an organization.
create table member_default (
  owner_id uuid primary key,
  session_units bigint check (session_units >= 1),
  week_units bigint check (week_units >= 1),
  month_units bigint check (month_units >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1),
  requests_per_minute bigint check (requests_per_minute >= 1),
  tokens_per_minute bigint check (tokens_per_minute >= 1)
);

-- Gives the members of an organization, or one person there, the limits that count for them: their own, else those of their
-- membership's team, else those of the organization. A person's keys follow her to her membership's team. Answers the
-- subjects whose earlier use is still to be summed.
create function usage_refresh_members(organization uuid, person uuid) returns setof uuid
  language plpgsql volatile
  as $$
  declare
    member record;
    key record;
  begin
    perform from organization o where o.id = organization for no key update;
    for member in
      select usage_member(organization, p.id) as id, p.id as person, t.team_id, l.limits
      from (
        select m.person_id as id from membership m where m.organization_id = organization
        union select o.person_id from member_limit o where o.organization_id = organization
        union select s.person_id from usage_subject s where s.organization_id = organization and s.person_id is not null
      ) p
      left join lateral (
        select m.team_id from membership m
        where m.person_id = p.id and m.organization_id = organization and m.ended_at is null
        order by m.source limit 1
      ) t on true
      left join lateral (
        select x.limits from (
          select 1 as place, array[o.session_units, o.week_units, o.month_units, o.concurrent_requests,
            o.requests_per_minute, o.tokens_per_minute] as limits
          from member_limit o where o.organization_id = organization and o.person_id = p.id
          union all
          select case d.owner_id when t.team_id then 2 else 3 end, array[d.session_units, d.week_units, d.month_units,
            d.concurrent_requests, d.requests_per_minute, d.tokens_per_minute]
          from member_default d where d.owner_id in (t.team_id, organization)
        ) x order by x.place limit 1
      ) l on true
      left join usage_subject s on s.subject_id = usage_member(organization, p.id)
      where (person is null or p.id = person)
        and coalesce(l.limits, array_fill(null::bigint, array[6])) is distinct from array[s.session_units, s.week_units,
          s.month_units, s.concurrent_requests, s.requests_per_minute, s.tokens_per_minute]
      order by 1
    loop
      if usage_set_subject(member.id, organization, null, member.limits[1:4]) then
        return next member.id;
      end if;
      update usage_subject s set person_id = member.person, requests_per_minute = member.limits[5],
        tokens_per_minute = member.limits[6]
      where s.subject_id = member.id;
    end loop;
    for key in
      select k.id, t.team_id, s.session_units, s.week_units, s.month_units, s.concurrent_requests
      from api_key k join usage_subject s on s.subject_id = k.id
      cross join lateral (
        select m.team_id from membership m
        where m.person_id = k.person_id and m.organization_id = organization and m.ended_at is null
        order by m.source limit 1
      ) t
      where k.organization_id = organization and k.person_id = person and k.kind = 'key' and k.revoked_at is null
        and s.team_id is distinct from t.team_id
      order by 1
    loop
      if usage_set_subject(key.id, organization, key.team_id,
        array[key.session_units, key.week_units, key.month_units, key.concurrent_requests]) then
        return next key.id;
      end if;
    end loop;
  end $$;

-- Keys of people count in them from now on.
insert into usage_subject (subject_id, organization_id, member_id)
  select k.id, k.organization_id, usage_member(k.organization_id, k.person_id) from api_key k where k.person_id is not null
on conflict (subject_id) do update set member_id = excluded.member_id;
update organization o set has_subjects = true
where not o.has_subjects and exists (select from api_key k where k.organization_id = o.id and k.person_id is not null);

-- The state of a batch gets the people of its keys; see `usage_book`.
alter type usage_book add attribute members uuid[];

-- Adds to the state of a batch the limited keys, people and teams of its admissions and of the holds of its other requests.
create or replace function usage_load_subjects(named_keys uuid[], requests uuid[], inout book usage_book)
  language plpgsql volatile
  as $$
  declare
    organizations integer := cardinality(book.subjects);
    ids uuid[];
    own usage_book;
    parent integer;
  begin
    select array_agg(s.subject_id), array_agg(s.team_id), array_agg(s.member_id) into book.keys, book.teams, book.members
    from (select distinct k.id from unnest(named_keys) k (id) offset 0) k
    cross join lateral (select * from usage_subject s where s.subject_id = k.id offset 0) s
    where s.organization_id = any (book.subjects);
    ids := array(
      select unnest(book.keys) union select unnest(book.teams) union select unnest(book.members) union
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
        coalesce(i.month_units, 9007199254740991), null]), null, null, null, null
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

-- The keys that count in a subject that is a key or a person.
create function usage_keys_of(subject uuid) returns uuid[]
  language sql stable
  as $$ select array(select s.subject_id from usage_subject s where s.member_id = subject) || subject $$;

-- Running requests of a subject that is limited for the first time count in it from now on. Under the lock.
create or replace function usage_begin_counting(subject uuid, organization uuid) returns void
  language plpgsql volatile
  as $$
  declare
    clock timestamptz := store_now();
    book usage_book := usage_load(array[organization], clock);
    hold record;
    located record;
    -- The team of a key that is limited already is in the book too.
    place integer;
    keys uuid[] := usage_keys_of(subject);
  begin
    -- A key or a team that was made without limits was noted as summed: it had no use then.
    update usage_subject s set counted_from = clock, summed_at = null where s.subject_id = subject;
    book := usage_load_subjects(array[subject], '{}', book);
    place := array_position(book.subjects, subject);
    for hold in
      select h.request_id, h.units from usage_hold h
      where h.organization_id = organization and (h.key_id = any (keys) or h.team_id = subject)
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
    where h.organization_id = organization and (h.key_id = any (keys) or h.team_id = subject);
    book.is_changed[place] := true;
    perform usage_save(book);
  end $$;

-- Adds what a subject had used of the windows in force before it was counted. Done once; answers whether it was now.
create or replace function usage_sum_earlier(subject uuid) returns boolean
  language plpgsql volatile
  as $$
  declare
    own usage_subject := (select s from usage_subject s where s.subject_id = subject);
    openings usage_opening[];
    opening usage_opening;
    book usage_book;
    k integer;
    place integer;
    keys uuid[] := usage_keys_of(subject);
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
      where r.organization_id = own.organization_id and (r.key_id = any (keys) or r.team_id = subject)
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

-- The other subjects that a request of a key counts in, where they are limited: the key, its person and its team.
create function usage_chain(key uuid, keys uuid[], members uuid[], teams uuid[]) returns uuid[]
  language sql immutable
  as $$
    select case when keys is not null then
      array[key, members[array_position(keys, key)], teams[array_position(keys, key)]] end
  $$;

create function usage_admissions(
  commands usage_admit_command[], over uuid[], ids uuid[], extra_enabled boolean[], keys uuid[], members uuid[], teams uuid[]
)
  returns table (
    n bigint, "position" integer, request_id uuid, owner integer, plan integer, concurrent_limit bigint, price_output bigint,
    input_units bigint, output_tokens bigint, units bigint, units_least bigint, is_extra boolean, chain uuid[],
    counters integer[], held bigint, known text
  )
  language sql stable
  as $$
    select c.ordinality, c.position, c.request_id, c.owner, c.plan, c.concurrent_limit, c.price_output,
      c.input_units, c.output_tokens,
      c.input_units + c.output_tokens * c.price_output, c.input_units + c.output_tokens_min * c.price_output,
      extra_enabled[c.owner], usage_chain(c.key_id, keys, members, teams),
      usage_counters(c.owner, usage_chain(c.key_id, keys, members, teams), ids), h.units,
      case when c.request_id = any (over) then '"over"' when extra_enabled[c.owner] is null then '"unknown"' end
    from unnest(commands) with ordinality c
    left join lateral (
      select h.units from usage_hold h where h.request_id = c.request_id and h.organization_id = ids[c.owner] offset 0
    ) h on true
  $$;

create or replace function usage_admit(
  commands usage_admit_command[], over uuid[], limits bigint[], clock timestamptz, inout book usage_book, out answers text
)
  language plpgsql volatile
  as $$
  declare
    step record;
    held bigint[] := book.held;
    running bigint[] := book.running;
    is_changed boolean[] := book.is_changed;
    counters integer[];
    count integer;
    room bigint;
    room_extra bigint;
    is_crowded boolean;
    seen text;
    sources usage_billing[];
    units bigint[];
    tokens bigint[];
  begin
    for step in
      select * from usage_admissions(commands, over, book.subjects, book.extra_enabled, book.keys, book.members, book.teams)
    loop
      if step.known is not null or step.held is not null then
        answers := concat(answers, ',[', step.position, ',',
          coalesce(step.known, usage_granted_before(step.request_id, step.owner, held, book)), ']');
        continue;
      end if;
      counters := step.counters;
      count := cardinality(counters);
      room := null;
      for i in 1..count - 1 loop
        room := least(room,
          coalesce(limits[step.plan][i], book.limits[counters[i]]) - book.used[counters[i]] - held[counters[i]]);
      end loop;
      room_extra := case when step.is_extra then book.limits[counters[count]] - book.used[counters[count]] - held[counters[count]] end;
      for i in 4..count - 1 loop
        room_extra := least(room_extra, book.limits[counters[i]] - book.used[counters[i]] - held[counters[i]]);
      end loop;
      is_crowded := running[step.owner] >= step.concurrent_limit;
      for i in 4..count - 1 by 3 loop
        is_crowded := is_crowded or running[(counters[i] + 3) / 4] >= book.concurrent[(counters[i] + 3) / 4];
      end loop;
      seen := concat(step.owner, ',[', held[counters[1]], ',', held[counters[2]], ',', held[counters[3]], ',',
        held[counters[count]], '],', coalesce(usage_subjects_answer(counters, step.chain, held, running, book), 'null'));
      sources[step.n] := usage_source(step.units, step.units_least, room, step.is_extra, room_extra);
      if sources[step.n] is null or is_crowded then
        answers := concat(answers, ',[', step.position, ',"', usage_refusal(sources[step.n], step.units_least, counters,
          step.is_extra, limits[step.plan:step.plan], book.limits, book.used), '",', seen, ']');
        continue;
      end if;
      tokens[step.n] := usage_tokens(step.units, case sources[step.n] when 'plan' then room else room_extra end,
        step.input_units, step.price_output, step.output_tokens);
      units[step.n] := step.input_units + tokens[step.n] * step.price_output;
      answers := concat(answers, ',[', step.position, ',"granted",', seen, ',', units[step.n], ',', tokens[step.n],
        ',"', sources[step.n], '"', ',"' || step.chain[3] || '"', ']');
      for i in case sources[step.n] when 'plan' then 1 else 4 end..count - (sources[step.n] = 'plan')::integer loop
        held[counters[i]] := held[counters[i]] + units[step.n];
      end loop;
      for i in 1..count - 1 by 3 loop
        running[(counters[i] + 3) / 4] := running[(counters[i] + 3) / 4] + 1;
        is_changed[(counters[i] + 3) / 4] := true;
      end loop;
      book.is_open[step.owner] := true;
    end loop;
    book.held := held;
    book.running := running;
    book.is_changed := is_changed;
    perform usage_write_holds(commands, sources, units, tokens, limits, clock, book);
  end $$;

create or replace function usage_write_holds(
  commands usage_admit_command[], sources usage_billing[], units bigint[], tokens bigint[], limits bigint[],
  clock timestamptz, book usage_book
)
  returns void
  language plpgsql volatile
  as $$
  begin
    insert into usage_hold
    select c.request_id, book.subjects[c.owner], c.key_id, c.operation, c.model, c.stream,
      c.price_input, c.price_cached_input, c.price_cache_write, c.price_output,
      sources[c.ordinality], units[c.ordinality], tokens[c.ordinality], clock, clock + c.lease_ms * interval '1 millisecond',
      book.starts_at[4 * c.owner - 3], book.ends_at[4 * c.owner - 3], limits[c.plan][1], book.used[4 * c.owner - 3],
      book.starts_at[4 * c.owner - 2], book.ends_at[4 * c.owner - 2], limits[c.plan][2], book.used[4 * c.owner - 2],
      book.starts_at[4 * c.owner - 1], book.ends_at[4 * c.owner - 1], limits[c.plan][3], book.used[4 * c.owner - 1],
      0, 0, 0, 0, 0, 0, 0, 'counted', (usage_chain(c.key_id, book.keys, book.members, book.teams))[3],
      usage_limited(usage_chain(c.key_id, book.keys, book.members, book.teams), book.subjects), c.lease_ms
    from unnest(commands) with ordinality c where units[c.ordinality] is not null;
  end $$;

drop function usage_admissions(usage_admit_command[], uuid[], uuid[], boolean[], uuid[], uuid[]);
drop function usage_chain(uuid, uuid[], uuid[]);
