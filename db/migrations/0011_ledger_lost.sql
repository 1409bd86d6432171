-- A store that woke up in the past: a replica that took over without the last commits of its primary, or a backup that was
-- restored. Nodes remember what they were last told; what the store then does not have any more is noted here
-- (docs/design/metering.md, A store that wakes up in the past).

-- Names this book, also in its copies: what nodes remember of it elsewhere stands under this name.
create table usage_ledger (
  id boolean primary key default true check (id),
  ledger_id uuid not null default gen_random_uuid()
);
insert into usage_ledger default values;

-- On which servers, and on which of their timelines, nodes have found this book. A promotion begins a timeline.
create table usage_timeline (
  server text not null,
  timeline integer not null,
  seen_at timestamptz not null,
  primary key (server, timeline)
);

-- Requests whose settlement was confirmed to a node, and whose record is not there any more.
create table usage_lost (
  request_id uuid primary key,
  organization_id uuid not null,
  charged bigint not null,
  noticed_at timestamptz not null
);

-- The server and the timeline of this database; null where the server does not say, as some managed ones.
create function usage_place(out server text, out timeline integer)
  language plpgsql stable
  as $$
  begin
    server := (select c.system_identifier::text from pg_control_system() c);
    timeline := ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer;
  exception when others then
    server := null;
    timeline := null;
  end $$;
