-- Who exists: organizations, their keys, the keys' secrets, and what was done to them.

-- The store's clock, in whole milliseconds. Everything that depends on time asks it; tests replace it.
create function store_now() returns timestamptz
  language sql volatile parallel safe
  as $$ select date_trunc('milliseconds', clock_timestamp()) $$;

create table organization (
  id uuid primary key,
  slug text not null unique check (slug ~ '^[a-z0-9-]{1,63}$'),
  name text not null,
  status text not null default 'active' check (status in ('active', 'suspended')),
  plan text,
  -- Weeks and months are counted from here: the creation, unless it is set.
  anchor_at timestamptz not null check (anchor_at = date_trunc('milliseconds', anchor_at)),
  extra_usage_enabled boolean not null default false,
  extra_usage_cap_units bigint check (extra_usage_cap_units >= 0),
  created_at timestamptz not null default store_now(),
  -- Rises with each change, so that whoever changes can say what they have read.
  version bigint not null default 1,
  -- False: no word of a request or an answer is stored.
  keeps_content boolean not null default true
);

create table api_key (
  id uuid primary key,
  organization_id uuid not null references organization (id),
  name text not null,
  scopes text[] not null check (cardinality(scopes) > 0),
  -- Null allows every model.
  allowed_models text[],
  created_at timestamptz not null default store_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
create index api_key_of_organization on api_key (organization_id, created_at);

-- A key keeps its id through rotations; each rotation adds a secret with the next number.
create table key_secret (
  key_id uuid not null references api_key (id),
  number integer not null check (number > 0),
  hash bytea not null unique check (length(hash) = 32),
  prefix text not null,
  suffix text not null,
  created_at timestamptz not null default store_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  primary key (key_id, number)
);

-- No foreign keys: an entry outlives what it is about.
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
  -- The address that the request came from; null: the node itself.
  address text,
  -- Covers the entry and the hash before it (src/store/audit-chain.ts).
  hash bytea check (length(hash) = 32)
);
create index audit_entry_of_organization on audit_entry (organization_id, id desc);

-- The plans in force, on every node the same: those of the file that was changed last, and those that were made by
-- management (src/store/plan.ts). Null does not limit. From `changed_at` on a plan's limits count.
create table plan (
  name text primary key,
  source text not null check (source in ('file', 'management')),
  version bigint not null check (version >= 1),
  session_units bigint check (session_units >= 1),
  week_units bigint check (week_units >= 1),
  month_units bigint check (month_units >= 1),
  requests_per_minute bigint check (requests_per_minute >= 1),
  tokens_per_minute bigint check (tokens_per_minute >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1),
  changed_at timestamptz not null
);

-- When the file whose plans are in force was changed, by the store's clock. Its row is the lock under which plans
-- change.
create table plan_file (
  is_one boolean primary key default true check (is_one),
  changed_at timestamptz not null
);
insert into plan_file (changed_at) values ('-infinity');
