-- Operators, who administer over HTTP; the audit log of what they did; and the fleet.

create table operator (
  id uuid primary key,
  -- Unique for ever: the audit log names operators by it.
  name text not null unique,
  role text not null check (role in ('admin', 'viewer', 'organization-admin')),
  -- An operator outlives the organization it belonged to: the audit log names the operator.
  organization_id uuid,
  created_by text not null,
  created_at timestamptz not null default store_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  last_used_from text,
  check ((role = 'organization-admin') = (organization_id is not null))
);

-- Secrets of operators, which work like those of keys: an operator keeps its ID through rotations, each of which adds a
-- secret with the next number.
create table operator_secret (
  operator_id uuid not null references operator (id),
  number integer not null check (number > 0),
  hash bytea not null unique check (length(hash) = 32),
  prefix text not null,
  suffix text not null,
  created_at timestamptz not null default store_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  primary key (operator_id, number)
);

-- A browser session of an operator, or of somebody who opened the link that a node on their own machine printed.
create table operator_session (
  hash bytea primary key check (length(hash) = 32),
  secret_hash bytea not null check (length(secret_hash) = 32),
  -- The hash of the operator's token, with which the session ends. Null: the session was opened by a link.
  token_hash bytea check (length(token_hash) = 32),
  -- The system's user who printed the link.
  local_user text,
  created_at timestamptz not null,
  used_at timestamptz not null,
  check (num_nonnulls(token_hash, local_user) = 1)
);

-- The subject that was created under an Idempotency-Key, so that a repeat creates nothing, with the hashes of the key
-- and of the request.
create table administration_repeat (
  actor text not null,
  key_hash bytea not null check (length(key_hash) = 32),
  request_hash bytea not null check (length(request_hash) = 32),
  subject text not null,
  created_at timestamptz not null default store_now(),
  primary key (actor, key_hash)
);

-- The entries of the audit log. There are no foreign keys, because an entry outlives what it is about.
create table audit_entry (
  id bigint generated always as identity primary key,
  at timestamptz not null default store_now(),
  actor text not null,
  action text not null,
  organization_id uuid,
  subject text not null,
  details jsonb not null,
  -- The numbers rise without gaps in the order of the commits; audit_head has the last one.
  number bigint not null unique,
  -- The address that the request came from; null: the node itself made the entry.
  address text,
  -- The hash covers the entry and the hash of the entry before it (src/admin/store/audit-chain.ts).
  hash bytea check (length(hash) = 32)
);
create index audit_entry_of_organization on audit_entry (organization_id, id desc);
create index audit_entry_of_subject on audit_entry (subject, number desc);

-- The head of the chain. Its row is the lock under which entries are written.
create table audit_head (
  is_one boolean primary key default true check (is_one),
  number bigint not null,
  hash bytea not null check (length(hash) = 32)
);

insert into audit_head (number, hash) values (0, decode(repeat('00', 32), 'hex'));

-- Engines that an operator has drained: they get no new requests (docs/routing.md, Draining an engine).
create table drained_engine (
  upstream text not null,
  -- The drained one of the addresses of the upstream's host name. Empty text: the whole upstream.
  replica text not null default '',
  drained_at timestamptz not null,
  -- When the drain ends by itself; null: it ends only when the engine is resumed.
  until timestamptz check (until > drained_at),
  actor text not null,
  primary key (upstream, replica)
);

-- The processes that serve, as each reports itself every few seconds (docs/operating.md, The fleet). A node of several
-- workers has a row for each. After a crash of the database the processes write their rows anew, so the table needs no
-- write-ahead log.
create unlogged table fleet_process (
  -- An id that a node makes when it starts; its workers share it.
  node_id uuid not null,
  -- The number of the worker; 0: the process is the whole node.
  worker smallint not null,
  name text not null,
  version text not null,
  -- The hash of the configuration in force.
  configuration text not null,
  started_at timestamptz not null,
  reported_at timestamptz not null,
  -- Readiness, figures and engines: src/core/store/fleet.ts.
  report jsonb not null,
  primary key (node_id, worker)
) with (fillfactor = 50);
