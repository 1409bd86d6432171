-- What organizations ask of their keys and of what is kept of them, and how an organization is renamed and closed
-- (docs/design/keys.md, Organizations). A node that does not know it serves a closed organization as a suspended one.

alter table organization
  drop constraint organization_status_check,
  add constraint organization_status_check check (status in ('active', 'suspended', 'closed')),
  -- How long a secret works from its making, and a key from its last use. Null does not limit.
  add column key_lifetime_max_days integer check (key_lifetime_max_days between 1 and 3650),
  add column key_unused_max_days integer check (key_unused_max_days between 1 and 3650),
  -- False: no word of a request or an answer is stored.
  add column keeps_content boolean not null default true,
  add column closed_at timestamptz check ((closed_at is not null) = (status = 'closed'));

-- Slugs that an organization had before, and those of organizations that are gone. None is ever another's.
create table organization_slug (
  slug text primary key,
  organization_id uuid not null
);
create index organization_slug_of_organization on organization_slug (organization_id);

-- Rises with each change, so that whoever changes can say what they have read.
alter table api_key add column version bigint not null default 1;
alter table team add column version bigint not null default 1;

-- An operator outlives the organization that it was of: the audit log names it.
alter table operator drop constraint operator_organization_id_fkey;

-- As before, but of an organization that keeps no content nothing is kept, whatever the node knew when the request began:
-- under the lock of the total, which whoever switches it takes too. True then: the answer needs no word in the log.
create or replace function kept_response_keep(
  owner uuid, response_id uuid, previous uuid, said text, answered text, rest text, bytes_max bigint
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
    insert into kept_response (id, organization_id, previous_id, created_at, bytes, input, output, response)
      values (response_id, owner, previous, store_now(), size, said, answered, rest)
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

-- From here to the commit nothing is kept of this organization.
create function kept_response_lock(owner uuid) returns void
  language sql volatile
  as $$
    insert into kept_response_total as t values (owner, 0) on conflict (organization_id) do update set bytes = t.bytes
  $$;

-- Drops some of what is kept of an organization that keeps nothing; answers how many are gone.
create function kept_response_purge(owner uuid, rows_max integer) returns bigint
  language plpgsql volatile
  as $$
  declare
    dropped bigint;
  begin
    perform kept_response_lock(owner);
    if not exists (select from organization where id = owner and (not keeps_content or status = 'closed')) then
      return 0;
    end if;
    with gone as (
      delete from kept_response where id in (
        select id from kept_response where organization_id = owner order by id limit rows_max
      ) returning bytes
    ), less as (
      update kept_response_total t set bytes = t.bytes - (select coalesce(sum(bytes), 0) from gone)
      where t.organization_id = owner
    )
    select count(*) into dropped from gone;
    return dropped;
  end $$;

-- Drops what is left of an organization that was closed so long ago that its records are gone: all but its slugs, which
-- stay taken, and the audit log. Of any other it drops nothing, whoever asks. Answers whether it did.
create function organization_forget(closed uuid) returns boolean
  language plpgsql volatile
  as $$
  begin
    perform from organization where id = closed and closed_at < store_now() - interval '15 months' for update;
    if not found or exists (select from kept_response where organization_id = closed) then return false; end if;
    insert into organization_slug (slug, organization_id) select slug, id from organization where id = closed
      on conflict do nothing;
    update operator set revoked_at = store_now() where organization_id = closed and revoked_at is null;
    delete from kept_response_total where organization_id = closed;
    delete from notice where organization_id = closed;
    delete from notice_hook where organization_id = closed;
    delete from key_default where owner_id = closed or owner_id in (select id from team where organization_id = closed);
    delete from usage_now where subject_id = closed
      or subject_id in (select subject_id from usage_subject where organization_id = closed);
    delete from usage_subject where organization_id = closed;
    delete from usage_anchor where organization_id = closed;
    delete from key_secret where key_id in (select id from api_key where organization_id = closed);
    delete from api_key where organization_id = closed;
    delete from team where organization_id = closed;
    delete from organization where id = closed;
    return true;
  end $$;
