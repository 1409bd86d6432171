-- Keys, people and teams as subjects of the ledger (docs/design/usage.md, Budgets): a limited subject has counters of its own,
-- like its organization, with the organization's window boundaries and under the organization's lock.

-- The id of the subject that stands for a person in an organization.
create function usage_member(organization uuid, person uuid) returns uuid
  language sql immutable
  as $$ select md5(organization::text || person::text)::uuid $$;
create index membership_by_member on membership (usage_member(organization_id, person_id));

-- The patterns that match a model: its id, and each prefix up to a slash, followed by `*`.
create function usage_patterns_of(model text) returns text[]
  language plpgsql immutable parallel safe
  as $$
  declare
    parts text[] := string_to_array(model, '/');
    prefix text := '';
    patterns text[] := array[model];
  begin
    for n in 1..cardinality(parts) - 1 loop
      prefix := prefix || parts[n] || '/';
      patterns := patterns || (prefix || '*');
    end loop;
    return patterns;
  end $$;

-- The patterns that match a model. Nearly all ids have one slash or none, and for these they are found without a loop.
create function usage_patterns(model text) returns text[]
  language sql immutable parallel safe
  as $$
    select case
      when strpos(model, '/') = 0 then array[model]
      when strpos(substr(model, strpos(model, '/') + 1), '/') = 0 then array[model, left(model, strpos(model, '/')) || '*']
      else usage_patterns_of(model) end
  $$;

-- Adds to the state of a batch the limited subjects of its admissions, of the holds of its other requests, and those in
-- `named`. Subjects that limit models are found by the subject that they belong to: each has a few, which costs less than a
-- search for every pattern. Rows are appended one at a time, because an aggregate for each column makes the batch three
-- times as expensive. Nearly all subjects have the windows of their organization; these need no `usage_roll`.
create function usage_load_subjects(
  commands usage_admit_command[], named uuid[], requests uuid[], inout book usage_book
)
  language plpgsql volatile
  as $$
  declare
    own record;
    subject integer := cardinality(book.subjects);
    organization integer;
    starts timestamptz[];
  begin
    select array_agg(s.subject_id), array_agg(s.team_id), array_agg(s.member_id) into book.keys, book.teams, book.members
    from (select distinct c.key_id from unnest(commands) c offset 0) k
    cross join lateral (select * from usage_subject s where s.subject_id = k.key_id offset 0) s;
    named := named || book.keys || book.teams || book.members;
    if book.has_models and cardinality(commands) > 0 then
      named := named || array(
        select s.subject_id from usage_subject s
        where s.parent_id = any (named || book.subjects || array(select distinct c.key_id from unnest(commands) c))
          and s.models = any (array(
            select p.* from (
              select distinct n.name from unnest(commands) c cross join lateral unnest(c.model || c.aliases) n (name) offset 0) m
            cross join lateral unnest(usage_patterns(m.name)) p))
          and s.counted_from is not null);
    end if;
    for own in
      select s.*, n.generation, n.updates, n.running, n.starts_at, n.ends_at, n.used, n.held
      from (
        select unnest(named) as id union
        select unnest(h.subjects) from unnest(requests) r (id)
        cross join lateral (select o.subjects from usage_hold o where o.request_id = r.id offset 0) h
      ) i
      cross join lateral (
        select * from usage_subject s where s.subject_id = i.id and s.counted_from is not null
          and s.organization_id = any (book.subjects) offset 0
      ) s
      left join lateral (
        select * from usage_now n where n.subject_id = i.id order by n.generation desc limit 1
      ) n on true
      order by i.id
    loop
      subject := subject + 1;
      organization := array_position(book.subjects, own.organization_id);
      starts := book.starts_at[4 * organization - 3:4 * organization];
      book.subjects[subject] := own.subject_id;
      book.parents[subject] := organization;
      book.generations[subject] := own.generation;
      book.updates[subject] := coalesce(own.updates, 0);
      book.running[subject] := coalesce(own.running, 0);
      book.concurrent[subject] := own.concurrent_requests;
      if own.models is not null then
        book.models[subject] := own.models;
        book.parent_ids[subject] := own.parent_id;
      end if;
      book.is_changed[subject] := false;
      book.starts_at := book.starts_at || coalesce(own.starts_at, array_fill(null::timestamptz, array[4]));
      book.ends_at := book.ends_at || coalesce(own.ends_at, array_fill(null::timestamptz, array[4]));
      book.used := book.used || coalesce(own.used, '{0,0,0,0}');
      book.held := book.held || coalesce(own.held, '{0,0,0,0}');
      -- The number for no limit is 2^53 - 1: no total beyond it could be read exactly.
      book.limits := book.limits || array[coalesce(own.session_nanos, 9007199254740991),
        coalesce(own.week_nanos, 9007199254740991), coalesce(own.month_nanos, 9007199254740991), null];
      continue when own.starts_at = starts;
      book := usage_roll(subject, starts, book.ends_at[4 * organization - 3:4 * organization], book);
    end loop;
  end $$;

-- The keys whose requests count in a subject that is a key or a person.
create function usage_keys_of(subject uuid) returns uuid[]
  language sql stable
  as $$ select array(select s.subject_id from usage_subject s where s.member_id = subject) || subject $$;

-- Whether a request counts in the subject `own`, by its key, the key's team and its model. `keys` are the keys whose
-- requests count in `own`, or in the subject that it belongs to.
create function usage_counts_in(own usage_subject, keys uuid[], key uuid, team uuid, model text) returns boolean
  language sql stable
  as $$
    select (key = any (keys) or team = coalesce(own.parent_id, own.subject_id) or own.parent_id = own.organization_id)
      and coalesce(own.models = any (usage_patterns(model)), true)
  $$;

-- The subjects in which an ended request counts as earlier use: those that were first counted after it ended. Called under
-- the lock.
create function usage_counted_since(record usage_record) returns uuid[]
  language sql stable
  as $$
    select nullif(array(
      select s.subject_id
      from unnest(array[record.organization_id, record.team_id, record.key_id,
        (select k.member_id from usage_subject k where k.subject_id = record.key_id)]) c (id)
      cross join lateral (
        select o.* from usage_subject o where o.subject_id = c.id
        union all
        select o.* from usage_subject o where o.parent_id = c.id and o.models = any (usage_patterns(record.model))
      ) s
      where s.counted_from >= record.ended_at and not coalesce(s.subject_id = any (record.subjects), false)
    ), '{}')
  $$;

-- Puts a key into a team or out of it, and sets the six limits of a key, a person or a team; null is no limit. They are in
-- force from the commit on, for running requests too. A subject that was never limited is counted from now on;
-- `usage_sum_earlier` adds what it had used before. Returns whether that is still to be done. `person`: null leaves the
-- person as it is. The caller notes the change (`usage_limits_changed`).
create function usage_set_subject(subject uuid, organization uuid, team uuid, person uuid, limits bigint[]) returns boolean
  language plpgsql volatile
  as $$
  declare
    was usage_subject;
  begin
    update organization o set has_subjects = true where o.id = organization and not o.has_subjects;
    perform usage_lock(array[organization]);
    insert into usage_subject as s (subject_id, organization_id, team_id, person_id, session_nanos, week_nanos, month_nanos,
      concurrent_requests, requests_per_minute, tokens_per_minute)
    values (subject, organization, team, person, limits[1], limits[2], limits[3], limits[4], limits[5], limits[6])
    on conflict (subject_id) do update set team_id = excluded.team_id, person_id = coalesce(excluded.person_id, s.person_id),
      session_nanos = excluded.session_nanos, week_nanos = excluded.week_nanos, month_nanos = excluded.month_nanos,
      concurrent_requests = excluded.concurrent_requests, requests_per_minute = excluded.requests_per_minute,
      tokens_per_minute = excluded.tokens_per_minute
    returning s.* into was;
    return usage_count_subject(was);
  end $$;

-- Sets a subject's six limits for the models that a pattern names. A person with a limit for models gets a row in
-- `usage_subject`, so that nodes learn whose limits changed. Returns what `usage_set_subject` returns.
create function usage_set_models_subject(parent uuid, pattern text, organization uuid, limits bigint[]) returns boolean
  language plpgsql volatile
  as $$
  declare
    was usage_subject;
  begin
    update organization o set has_subjects = true, has_models = true where o.id = organization and not o.has_models;
    perform usage_lock(array[organization]);
    insert into usage_subject (subject_id, organization_id, person_id)
    select parent, organization, m.person_id from membership m
    where m.organization_id = organization and usage_member(organization, m.person_id) = parent
    on conflict do nothing;
    insert into usage_subject as s (subject_id, organization_id, session_nanos, week_nanos, month_nanos, concurrent_requests,
      requests_per_minute, tokens_per_minute, parent_id, models)
    values (usage_models_subject(parent, pattern), organization, limits[1], limits[2], limits[3], limits[4], limits[5],
      limits[6], parent, pattern)
    on conflict (subject_id) do update set session_nanos = excluded.session_nanos, week_nanos = excluded.week_nanos,
      month_nanos = excluded.month_nanos, concurrent_requests = excluded.concurrent_requests,
      requests_per_minute = excluded.requests_per_minute, tokens_per_minute = excluded.tokens_per_minute
    returning s.* into was;
    return usage_count_subject(was);
  end $$;

-- Begins to count the usage of a subject that has limits now. Returns whether its earlier use is still to be summed.
create function usage_count_subject(own usage_subject) returns boolean
  language plpgsql volatile
  as $$
  declare
    is_new boolean := own.counted_from is null
      and coalesce(own.session_nanos, own.week_nanos, own.month_nanos, own.concurrent_requests) is not null;
  begin
    if is_new then
      perform usage_begin_counting(own);
    end if;
    return is_new or (own.counted_from is not null and own.summed_at is null);
  end $$;

-- Begins to count the usage of a subject that is limited for the first time, its running requests included. Called under
-- the lock. Most new subjects run nothing, and their row in `usage_now` is written by their first request.
create function usage_begin_counting(own usage_subject) returns void
  language plpgsql volatile
  as $$
  declare
    clock timestamptz := store_now();
    book usage_book;
    hold record;
    located record;
    place integer;
    keys uuid[] := usage_keys_of(coalesce(own.parent_id, own.subject_id));
  begin
    -- A key or a team that was made without limits has a time in `summed_at`, because there was no use to add up then. Now
    -- there may be some, so it is added up again.
    update usage_subject s set counted_from = clock, summed_at = null where s.subject_id = own.subject_id;
    update usage_hold h set subjects = coalesce(h.subjects, '{}') || own.subject_id
    where h.organization_id = own.organization_id and usage_counts_in(own, keys, h.key_id, h.team_id, h.model);
    if not found then
      return;
    end if;
    book := usage_load(array[own.organization_id], clock);
    book := usage_load_subjects('{}', array[own.subject_id], '{}', book);
    place := array_position(book.subjects, own.subject_id);
    for hold in
      select h.request_id, h.nanos from usage_hold h
      where h.organization_id = own.organization_id and own.subject_id = any (h.subjects)
    loop
      located := usage_locate(hold.request_id, array[4 * place - 3, 4 * place - 2, 4 * place - 1], book.used, book.held, book);
      book := located.book;
      book.used := located.used;
      book.held := located.held;
      for i in 1..3 loop
        book.held[located.counters[i]] := book.held[located.counters[i]] + hold.nanos;
      end loop;
      book.running[place] := book.running[place] + 1;
    end loop;
    book.is_changed[place] := true;
    perform usage_save(book);
  end $$;

-- Adds what a subject had used of the windows in force before it was counted. The records of that time are read without a lock,
-- because no more of them are added. Done once; returns whether this call did it.
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
    openings := array(select e from usage_earlier(own) e);
    perform usage_lock(array[own.organization_id]);
    update usage_subject s set summed_at = store_now() where s.subject_id = subject and s.summed_at is null;
    if not found then
      return false;
    end if;
    if cardinality(openings) = 0 then
      return true;
    end if;
    book := usage_load_subjects('{}', array[subject], '{}', usage_load(array[own.organization_id], store_now()));
    place := array_position(book.subjects, subject);
    foreach opening in array openings loop
      insert into usage_opening select opening.*;
      insert into usage_tally as t values (opening.subject_id, opening.kind, opening.starts_at, opening.ends_at, opening.nanos, 0)
      on conflict (subject_id, kind, starts_at) do update set recorded = t.recorded + excluded.recorded;
      k := 4 * place - 4 + array_position(enum_range(null::usage_window_kind), opening.kind);
      if book.starts_at[k] = opening.starts_at then
        book.used[k] := book.used[k] + opening.nanos;
      else
        insert into usage_past as p values (opening.subject_id, opening.kind, opening.starts_at, opening.ends_at, opening.nanos, 0)
        on conflict (subject_id, kind, starts_at) do update set used = p.used + excluded.used;
      end if;
    end loop;
    book.is_changed[place] := true;
    perform usage_save(book);
    -- The limits are unchanged, but less of them is left, so nodes have to learn of the change.
    perform usage_limits_changed(array[coalesce(own.parent_id, subject)]);
    return true;
  end $$;

-- Puts a key into a team or out of it, and notes the change; the key's limits stay. Returns what `usage_set_subject` returns.
create function usage_set_team(subject uuid, organization uuid, team uuid) returns boolean
  language plpgsql volatile
  as $$
  declare
    is_unsummed boolean := usage_set_subject(subject, organization, team, null, (
      select array[s.session_nanos, s.week_nanos, s.month_nanos, s.concurrent_requests, s.requests_per_minute,
        s.tokens_per_minute]
      from usage_subject s where s.subject_id = subject));
  begin
    perform usage_limits_changed(array[subject]);
    return is_unsummed;
  end $$;

-- The limits of a team, a person or a key of an organization, without raises (temporary increases): each of the six is the
-- subject's own, or else what its team gives to keys or to people, or else what the organization gives. `origins` says
-- where each comes from. A person is in the team of the membership. Everything is looked up by id, so that it does not
-- matter how many other subjects there are.
create function limits_in_force(organization uuid, subject uuid)
  returns table (person_id uuid, team_id uuid, limits bigint[], origins text[])
  language sql stable
  as $$
    select s.person, case when s.person is null then s.team end, c.limits, c.origins
    from (
      select null::uuid as person, null::uuid as team, null as gets from team t
      where t.id = subject and t.organization_id = organization
      union all
      select p.id, t.team_id, 'members'
      from (
        select m.person_id as id from membership m
        where usage_member(m.organization_id, m.person_id) = subject and m.organization_id = organization
        union select u.person_id from usage_subject u
        where u.subject_id = subject and u.organization_id = organization and u.person_id is not null
      ) p
      left join usage_team_of(organization, p.id) t on true
      union all
      select null, u.team_id, case k.kind when 'key' then 'keys' end
      from api_key k left join usage_subject u on u.subject_id = k.id
      where k.id = subject and k.organization_id = organization
    ) s
    left join limit_value o on o.subject_id = subject and o.kind = 'own' and o.models = ''
    left join limit_value t on t.subject_id = s.team and t.kind = s.gets
    left join limit_value w on w.subject_id = organization and w.kind = s.gets
    cross join lateral limit_chosen(limit_array(o), limit_array(t), limit_array(w)) c
  $$;

-- The teams, people and keys of an organization that may have limits: all but revoked keys.
create function limits_subjects(organization uuid) returns setof uuid
  language sql stable
  as $$
    select t.id from team t where t.organization_id = organization
    union all select k.id from api_key k where k.organization_id = organization and k.revoked_at is null
    union all (
      select usage_member(organization, m.person_id) from membership m where m.organization_id = organization
      union select u.subject_id from usage_subject u where u.organization_id = organization and u.person_id is not null)
  $$;

-- Writes the limits in force of an organization and of its subjects into the ledger, after a change of anything that they
-- follow from: a value of limits, a membership, a team. `concerned`: the subjects that may be affected; null: all. Returns
-- the subjects whose earlier use is still to be summed.
create function limits_refresh(organization uuid, concerned uuid[]) returns setof uuid
  language plpgsql volatile
  as $$
  declare
    one record;
    changed uuid[] := '{}';
  begin
    perform from organization o where o.id = organization for no key update;
    perform usage_lock(array[organization]);
    update organization o set own_limits = w.own from (
      select nullif(limit_array(v), array_fill(null::bigint, array[6])) as own
      from (select 1) one left join limit_value v on v.subject_id = organization and v.kind = 'own' and v.models = ''
    ) w
    where o.id = organization and o.own_limits is distinct from w.own;
    if found then
      changed := array[organization];
    end if;
    -- One query for all subjects: a query for each would be planned each time, which takes a millisecond.
    for one in
      select i.id as subject_id, f.* from unnest(coalesce(concerned, array(select limits_subjects(organization)))) i (id)
      cross join lateral limits_in_force(organization, i.id) f
      left join usage_subject s on s.subject_id = i.id
      where f.limits is distinct from array[s.session_nanos, s.week_nanos, s.month_nanos, s.concurrent_requests,
        s.requests_per_minute, s.tokens_per_minute] or f.team_id is distinct from s.team_id
      order by i.id
    loop
      changed := changed || one.subject_id;
      if usage_set_subject(one.subject_id, organization, one.team_id, one.person_id, one.limits) then
        return next one.subject_id;
      end if;
    end loop;
    perform usage_limits_changed(changed);
  end $$;

-- Does what `limits_refresh` does, after a change of a person's membership. Everything with which the person sends requests
-- (keys, sign-ins and identity tokens) follows the membership's team.
create function limits_refresh_person(organization uuid, person uuid) returns setof uuid
  language plpgsql volatile
  as $$
  declare
    keys uuid[] := array(
      select k.id from api_key k where k.organization_id = organization and k.person_id = person and k.revoked_at is null
      order by 1);
    key record;
  begin
    perform usage_lock(array[organization]);
    for key in
      select s.subject_id as id, t.team_id from usage_subject s, usage_team_of(organization, person) t
      where s.subject_id = any (keys) and s.team_id is distinct from t.team_id order by 1
    loop
      if usage_set_team(key.id, organization, key.team_id) then
        return next key.id;
      end if;
    end loop;
    return query select limits_refresh(organization, usage_member(organization, person) || keys);
  end $$;
