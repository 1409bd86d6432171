-- Webhooks of organizations, and what is to be sent to them (docs/notices.md).

create table notice_hook (
  organization_id uuid primary key references organization (id),
  url text not null,
  -- It signs what is sent, so it is kept as it is.
  secret text not null,
  -- Percentages of a window's limit.
  shares integer[] not null,
  key_expiry_days integer not null check (key_expiry_days between 0 and 90),
  changed_at timestamptz not null
);

create table notice (
  id uuid primary key,
  organization_id uuid not null references organization (id),
  kind text not null check (kind in ('usage.share_reached', 'organization.suspended', 'key.expiring')),
  -- The window and its share, the key and its expiry: the same is told once.
  about text not null,
  details jsonb not null,
  created_at timestamptz not null,
  attempts integer not null default 0,
  -- Null where the notice was delivered or given up. While a node sends it, the instant from which another may.
  next_attempt_at timestamptz,
  delivered_at timestamptz,
  problem text,
  unique (organization_id, about)
);
create index notice_due on notice (next_attempt_at);
