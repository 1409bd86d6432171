-- Where notices are sent, and what is to be sent there (docs/notices.md).

create table notice_destination (
  id uuid primary key,
  -- Null: the destination is the operators', and hears of the fleet.
  organization_id uuid references organization (id),
  name text not null,
  form text not null check (form in ('json', 'slack', 'teams', 'mail')),
  -- What may be shown of the address: the host of a URL, or the addresses of people.
  host text not null,
  -- A URL, sealed where the form makes it a secret; or addresses of mail, with commas between them.
  address text not null,
  -- It signs what is sent as JSON; other forms have none.
  secret text,
  -- Percentages of a window's limit.
  shares integer[] not null,
  key_expiry_days integer not null check (key_expiry_days between 0 and 90),
  changed_at timestamptz not null
);
create unique index notice_destination_name
  on notice_destination (coalesce(organization_id, '00000000-0000-0000-0000-000000000000'), name);

-- Whom destinations of mail have named, each with the secret of the link that unsubscribes. It outlives the destination, so that
-- nobody is subscribed again by another one.
create table mail_recipient (
  id uuid primary key default gen_random_uuid(),
  -- Null: the operators'.
  organization_id uuid references organization (id) on delete cascade,
  address text not null,
  unsubscribed_at timestamptz
);
create unique index mail_recipient_address
  on mail_recipient (coalesce(organization_id, '00000000-0000-0000-0000-000000000000'), address);

create table notice (
  id uuid primary key,
  destination_id uuid references notice_destination (id) on delete cascade,
  -- A notice to one person, by mail, has no destination.
  person_id uuid references person (id),
  -- A name of src/features/notices/kinds.ts.
  kind text not null,
  -- The window and its share, the key and its expiry: the same is told once.
  about text not null,
  details jsonb not null,
  created_at timestamptz not null,
  attempts integer not null default 0,
  -- Null where the notice was delivered or given up. While a node sends it, the instant from which another may.
  next_attempt_at timestamptz,
  delivered_at timestamptz,
  problem text,
  -- The addresses of mail that have it, or have refused it for good.
  settled text[] not null default '{}',
  unique (destination_id, about),
  unique (person_id, about),
  check ((destination_id is null) <> (person_id is null))
);
create index notice_due on notice (next_attempt_at);

-- Conditions of the fleet, such as an engine that is down: a notice tells of each when it has lasted, and when it is over.
create table notice_condition (
  about text primary key,
  kind text not null,
  -- The kind of the notice of its end; null: its end is not told.
  ends text,
  details jsonb not null,
  since timestamptz not null,
  -- When it was first seen to be over; null while it lasts.
  absent_since timestamptz,
  is_told boolean not null default false
);
