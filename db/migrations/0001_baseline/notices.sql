-- The destinations of notices, and the notices to send to them (docs/notices.md).

create table notice_destination (
  id uuid primary key,
  -- The organization to which the destination belongs. Null: the destination belongs to the operators, and gets the
  -- notices of the fleet.
  organization_id uuid references organization (id),
  name text not null,
  form text not null check (form in ('json', 'slack', 'teams', 'mail')),
  -- The part of the address that may be shown: the host of a URL, or the addresses of people.
  host text not null,
  -- The URL, encrypted if the destination's form makes it a secret; or the mail addresses, with commas between them.
  address text not null,
  -- The secret that signs notices sent as JSON; other forms have none.
  secret text,
  -- The percentages of a window's limit at which notices are sent.
  shares integer[] not null,
  key_expiry_days integer not null check (key_expiry_days between 0 and 90),
  changed_at timestamptz not null
);
create unique index notice_destination_name
  on notice_destination (coalesce(organization_id, '00000000-0000-0000-0000-000000000000'), name);

-- The recipients that mail destinations have named. The id of each is the secret of their unsubscribe link. A row outlives
-- its destinations, so that nobody who has unsubscribed is subscribed again by another destination.
create table mail_recipient (
  id uuid primary key default gen_random_uuid(),
  -- The organization of the recipient's destination. Null: the destination is the operators'.
  organization_id uuid references organization (id) on delete cascade,
  address text not null,
  unsubscribed_at timestamptz
);
create unique index mail_recipient_address
  on mail_recipient (coalesce(organization_id, '00000000-0000-0000-0000-000000000000'), address);

create table notice (
  id uuid primary key,
  destination_id uuid references notice_destination (id) on delete cascade,
  -- The person who gets the notice by mail; such a notice has no destination.
  person_id uuid references person (id),
  -- The kind of the notice: a name of src/features/notices/kinds.ts.
  kind text not null,
  -- The event that the notice reports, such as the window and its share, or the key and its expiry. Each event is
  -- reported once.
  about text not null,
  details jsonb not null,
  created_at timestamptz not null,
  attempts integer not null default 0,
  -- When to send the notice next; null if it was delivered or given up. While a node sends it, the instant from which
  -- another node may.
  next_attempt_at timestamptz,
  delivered_at timestamptz,
  problem text,
  -- The mail addresses that have got the notice, or have refused it for good.
  settled text[] not null default '{}',
  unique (destination_id, about),
  unique (person_id, about),
  check ((destination_id is null) <> (person_id is null))
);
create index notice_due on notice (next_attempt_at);

-- Conditions of the fleet, such as an engine that is down: a notice is sent when a condition has lasted for a while, and
-- when it is over.
create table notice_condition (
  about text primary key,
  kind text not null,
  -- The kind of the notice that is sent when the condition ends; null: no notice is sent then.
  ends text,
  details jsonb not null,
  since timestamptz not null,
  -- When the condition was first seen to be over; null while it lasts.
  absent_since timestamptz,
  is_told boolean not null default false
);
