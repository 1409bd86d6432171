-- A change of a person's limits put the person's keys back into a removed team: they leave it again. A removed team limits
-- nothing, so nothing else changes.
update usage_subject s set team_id = null from team t where t.id = s.team_id and t.removed_at is not null;

-- The keys of sign-ins and of identity tokens have no limits of their own any more: a limit ended with such a key, which
-- the next sign-in or token replaces. Those that were set move to the person in the organization, where all keys, sign-ins
-- and tokens share them. Where several count, the least counts from now on, also beside the limits that the person has
-- there already, by a team or the organization too. Raises of such keys end.
do $$
  declare
    keys uuid[] := array(
      select s.subject_id from usage_subject s join api_key k on k.id = s.subject_id
      where k.kind <> 'key' and coalesce(s.session_units, s.week_units, s.month_units, s.concurrent_requests,
        s.requests_per_minute, s.tokens_per_minute) is not null);
    own record;
  begin
    perform usage_lock(array(select distinct s.organization_id from usage_subject s where s.subject_id = any (keys) order by 1));
    insert into member_limit as m
    select s.organization_id, k.person_id, least(min(s.session_units), min(now.session_units)),
      least(min(s.week_units), min(now.week_units)), least(min(s.month_units), min(now.month_units)),
      least(min(s.concurrent_requests), min(now.concurrent_requests)),
      least(min(s.requests_per_minute), min(now.requests_per_minute)),
      least(min(s.tokens_per_minute), min(now.tokens_per_minute))
    from usage_subject s
    join api_key k on k.id = s.subject_id
    left join usage_subject now on now.subject_id = usage_member(s.organization_id, k.person_id)
    where s.subject_id = any (keys) and k.revoked_at is null and k.person_id is not null
    group by s.organization_id, k.person_id
    on conflict (organization_id, person_id) do update set session_units = excluded.session_units,
      week_units = excluded.week_units, month_units = excluded.month_units,
      concurrent_requests = excluded.concurrent_requests, requests_per_minute = excluded.requests_per_minute,
      tokens_per_minute = excluded.tokens_per_minute;
    for own in
      select distinct s.organization_id as place, k.person_id as person
      from usage_subject s join api_key k on k.id = s.subject_id
      where s.subject_id = any (keys) and k.revoked_at is null and k.person_id is not null order by 1, 2
    loop
      perform usage_refresh_members(own.place, own.person);
    end loop;
    delete from limit_raise r where r.subject_id = any (keys);
    perform usage_set_subject(s.subject_id, s.organization_id, s.team_id, array_fill(null::bigint, array[4]))
    from (select * from usage_subject where subject_id = any (keys) order by subject_id offset 0) s;
    update usage_subject s set requests_per_minute = null, tokens_per_minute = null where s.subject_id = any (keys);
  end $$;

-- Secrets that rotations gave to such keys end: they outlive the sign-in or the token. A rotation also ended what the
-- identity tokens of a person count as, which is a hash of its own (src/postgres/people.ts): it works again.
insert into key_secret (key_id, number, hash, prefix, suffix, created_at)
select k.id, (select max(s.number) + 1 from key_secret s where s.key_id = k.id),
  sha256(convert_to('identity tokens of key_' || replace(k.id::text, '-', ''), 'UTF8')), '', '', k.created_at
from api_key k
where k.kind = 'jwt' and k.revoked_at is null
  and exists (select from key_secret s where s.key_id = k.id and s.prefix like 'slk\_%')
on conflict (hash) do update set expires_at = null, revoked_at = null;
update key_secret s set revoked_at = store_now() from api_key k
where k.id = s.key_id and k.kind <> 'key' and s.prefix like 'slk\_%' and s.revoked_at is null;
