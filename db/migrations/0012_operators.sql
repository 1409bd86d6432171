-- Who may administer over HTTP, what they have asked for once already, and the chain of the audit log.

create table operator (
  id uuid primary key,
  -- Unique for ever: the audit log names operators by it.
  name text not null unique,
  role text not null check (role in ('admin', 'viewer', 'organization-admin')),
  organization_id uuid references organization (id),
  created_by text not null,
  created_at timestamptz not null default store_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  last_used_from text,
  check ((role = 'organization-admin') = (organization_id is not null))
);

-- Secrets as keys have them: an operator keeps its ID through rotations, each of which adds a secret with the next
-- number.
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

-- The head of the chain. Its row is the lock under which entries are written.
create table audit_head (
  is_one boolean primary key default true check (is_one),
  number bigint not null,
  hash bytea not null check (length(hash) = 32)
);
insert into audit_head (number, hash) values (0, decode(repeat('00', 32), 'hex'));
