-- Answers that are kept while they run and for a while after, so that they can be read again: src/store/kept.ts.

create table kept_answer (
  request_id uuid primary key,
  organization_id uuid not null,
  -- SHA-256 of an idempotency key with its owner and operation. Null: the answer has none.
  claim bytea unique check (length(claim) = 32),
  -- SHA-256 of the request's body.
  body bytea check (length(body) = 32),
  -- Of a background response.
  response_id uuid unique,
  -- open: it runs, or its node is gone. ended: its log is whole. lost: its log is gone, or was never whole.
  state text not null default 'open' check (state in ('open', 'ended', 'lost')),
  -- The size of its log, counted when it ended.
  bytes bigint not null default 0,
  -- The response object of a background response, as JSON text.
  response text,
  created_at timestamptz not null
);
create index kept_answer_of_organization on kept_answer (organization_id, request_id);

-- The logs themselves, where there is no Redis. Entries are numbered from 0, without gaps.
create table kept_answer_entry (
  request_id uuid not null,
  number integer not null,
  said text not null,
  is_end boolean not null,
  primary key (request_id, number)
);

-- A copy is worth less than the time of its client: the commit does not wait for the disk. An entry that comes again is
-- the same entry. Nothing comes after the end, or after a gap.
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
  -- The rest is of a replay.
  replay_of uuid,
  key_id uuid,
  operation text,
  model text,
  stream boolean,
  noted_at timestamptz not null
);
