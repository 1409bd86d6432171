-- Responses that can be continued, and answers that are kept so that they can be read again.

-- Used by src/features/responses/store/responses.ts. The texts are JSON that no SQL looks into; as text they may hold what
-- jsonb may not.
create table kept_response (
  id uuid primary key,
  organization_id uuid not null,
  previous_id uuid,
  created_at timestamptz not null,
  bytes bigint not null,
  input text not null,
  output text not null,
  response text not null,
  -- The key that made the response, and through which its person is known.
  key_id uuid not null
);
create index kept_response_by_age on kept_response (organization_id, id);

-- The total size of an organization's responses. Its row is the lock for storing and deleting them, and is locked before
-- their rows.
create table kept_response_total (
  organization_id uuid primary key,
  bytes bigint not null
);

-- Stores a response, and deletes the organization's oldest ones if their space is needed. The commit does not wait for the
-- disk, because the client waits for it. Returns false if the response is too large. Nothing is stored for an organization
-- that keeps no content, which is checked under the lock of the total, since that policy is changed under the same lock.
-- The function then returns true, because this is nothing to log.
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

-- Locks an organization until the commit, so that no response of it is stored meanwhile.
create function kept_response_lock(owner uuid) returns void
  language sql volatile
  as $$
    insert into kept_response_total as t values (owner, 0) on conflict (organization_id) do update set bytes = t.bytes
  $$;

-- Deletes some of what is stored for an organization that keeps no content; returns how many rows were deleted.
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

create function kept_response_remove(owner uuid, response_id uuid) returns boolean
  language plpgsql volatile
  as $$
  declare
    freed bigint;
  begin
    perform 1 from kept_response_total where organization_id = owner for update;
    delete from kept_response where id = response_id and organization_id = owner returning bytes into freed;
    if freed is null then return false; end if;
    update kept_response_total set bytes = bytes - freed where organization_id = owner;
    return true;
  end $$;

-- Deletes what is older than an id; returns how many rows were deleted. Ids sort by time, so the oldest come first, whoever
-- they belong to.
create function kept_response_forget(before uuid, rows_max integer) returns bigint
  language plpgsql volatile
  as $$
  declare
    owners uuid[];
    dropped bigint;
  begin
    select array_agg(distinct organization_id order by organization_id) into owners
      from (select organization_id from kept_response where id < before order by id limit rows_max) as oldest;
    perform 1 from kept_response_total where organization_id = any(owners) order by organization_id for update;
    with gone as (
      delete from kept_response where organization_id = any(owners) and id in (
        select id from kept_response where id < before order by id limit rows_max
      ) returning organization_id, bytes
    ), freed as (
      select organization_id, sum(bytes) as bytes, count(*) as gone from gone group by organization_id
    ), less as (
      update kept_response_total t set bytes = t.bytes - f.bytes from freed f where t.organization_id = f.organization_id
    )
    select coalesce(sum(gone), 0) into dropped from freed;
    return dropped;
  end $$;

-- Answers that are kept while they run and for a while after, so that they can be read again:
-- src/features/responses/store/kept.ts.
create table kept_answer (
  request_id uuid primary key,
  organization_id uuid not null,
  -- SHA-256 of an idempotency key with its owner and operation. Null: the request had no idempotency key.
  claim bytea unique check (length(claim) = 32),
  -- SHA-256 of the request's body.
  body bytea check (length(body) = 32),
  -- The id of the response, for a background response only.
  response_id uuid unique,
  -- open: the answer is still running, or its node is gone. ended: its log is complete. lost: its log is gone, or was
  -- never complete.
  state text not null default 'open' check (state in ('open', 'ended', 'lost')),
  -- The size of the answer's log, counted when the answer ended.
  bytes bigint not null default 0,
  -- The response object of a background response, as JSON text.
  response text,
  created_at timestamptz not null
);
create index kept_answer_of_organization on kept_answer (organization_id, request_id);

-- The logs of kept answers, if there is no Redis. Entries are numbered from 0, without gaps.
create table kept_answer_entry (
  request_id uuid not null,
  number integer not null,
  said text not null,
  is_end boolean not null,
  primary key (request_id, number)
);

-- Appends an entry to the log of a kept answer. The copy is worth less than its client's time, so the commit does not wait
-- for the disk. An entry may be sent again: it is appended once. Nothing is appended after the end of the log, or after a
-- gap.
create function kept_answer_append(request uuid, place integer, entry text, ends boolean) returns text
  language plpgsql volatile
  as $$
  begin
    perform set_config('synchronous_commit', 'off', true);
    if exists (select from kept_answer_entry e where e.request_id = request and e.is_end and e.number < place) then
      return 'ended';
    end if;
    if place > 0 and not exists (
      select from kept_answer_entry e where e.request_id = request and e.number = place - 1
    ) then
      return 'lost';
    end if;
    insert into kept_answer_entry values (request, place, entry, ends) on conflict do nothing;
    if found then return 'appended'; end if;
    return (select case when e.said = entry and e.is_end = ends then 'appended' when e.is_end then 'ended' else 'lost' end
      from kept_answer_entry e where e.request_id = request and e.number = place);
  end $$;

-- What receipts say of requests beyond the ledger: that an answer went on without its client, or repeated another.
create table answer_note (
  request_id uuid primary key,
  organization_id uuid not null,
  detached boolean not null default false,
  -- The columns from here on are set only for a replay of an earlier answer.
  replay_of uuid,
  key_id uuid,
  operation text,
  model text,
  stream boolean,
  noted_at timestamptz not null
);
