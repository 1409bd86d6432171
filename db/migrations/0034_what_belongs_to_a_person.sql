-- What belongs to a person: the team of all that the person calls with, and the responses that were made for the person.

-- All that somebody calls with in an organization follows the membership's team: keys, sign-ins and identity tokens. Before,
-- only keys did; sign-ins followed at their next refresh, and identity tokens that a node remembered did not at all.

-- The team of a person's membership in an organization, null without one; no row without a membership. A team that was
-- removed is none.
create function usage_team_of(organization uuid, person uuid) returns table (team_id uuid)
  language sql stable
  as $$
    select t.id from membership m left join team t on t.id = m.team_id and t.removed_at is null
    where m.person_id = person and m.organization_id = organization and m.ended_at is null
    order by m.source limit 1
  $$;

-- As 0026 has it, but for the keys that follow.
create or replace function usage_refresh_members(organization uuid, person uuid) returns setof uuid
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
      left join usage_team_of(organization, p.id) t on true
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
      cross join usage_team_of(organization, person) t
      where k.organization_id = organization and k.person_id = person and k.revoked_at is null
        and s.team_id is distinct from t.team_id
      order by 1
    loop
      if usage_set_subject(key.id, organization, key.team_id,
        array[key.session_units, key.week_units, key.month_units, key.concurrent_requests]) then
        return next key.id;
      end if;
    end loop;
  end $$;

-- The key by which a stored response was made, and with it the person. Null: it was stored by an older version, and is nobody's.
alter table kept_response add column key_id uuid;

-- Nodes of an older version call this one.
create or replace function kept_response_keep(
  owner uuid, response_id uuid, previous uuid, said text, answered text, rest text, bytes_max bigint
) returns boolean
  language plpgsql volatile
  as $$ begin return kept_response_keep(owner, response_id, previous, said, answered, rest, bytes_max, null); end $$;

-- As 0008 has it, with the key.
create function kept_response_keep(
  owner uuid, response_id uuid, previous uuid, said text, answered text, rest text, bytes_max bigint, by_key uuid
) returns boolean
  language plpgsql volatile
  as $$
  declare
    size bigint := octet_length(said) + octet_length(answered) + octet_length(rest);
    total bigint;
    freed bigint;
  begin
    perform set_config('synchronous_commit', 'off', true);
    if size > bytes_max then return false; end if;
    insert into kept_response_total as t values (owner, 0)
      on conflict (organization_id) do update set bytes = t.bytes
      returning t.bytes into total;
    if exists (select from organization where id = owner and (not keeps_content or status = 'closed')) then
      return true;
    end if;
    insert into kept_response (id, organization_id, previous_id, created_at, bytes, input, output, response, key_id)
      values (response_id, owner, previous, store_now(), size, said, answered, rest, by_key)
      on conflict do nothing;
    if not found then return true; end if;
    total := total + size;
    while total > bytes_max loop
      with oldest as (
        select id, sum(bytes) over (order by id) - bytes as before
        from (select id, bytes from kept_response where organization_id = owner and id <> response_id
              order by id limit 1000) as old
      ), gone as (
        delete from kept_response where id in (select id from oldest where before < total - bytes_max) returning bytes
      )
      select sum(bytes) into freed from gone;
      exit when freed is null;
      total := total - freed;
    end loop;
    update kept_response_total set bytes = total where organization_id = owner;
    return true;
  end $$;
