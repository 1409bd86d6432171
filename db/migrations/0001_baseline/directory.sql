-- Who exists: people, organizations, their teams, their keys, the keys' secrets, and the plans that limit them.

-- The store's clock, in whole milliseconds. Everything that depends on time asks it; tests replace it.
create function store_now() returns timestamptz
  language sql volatile parallel safe
  as $$ select date_trunc('milliseconds', clock_timestamp()) $$;

-- People who sign in through an issuer (docs/identity.md).
create table person (
  id uuid primary key,
  issuer text not null,
  -- The SHA-256 of the person's subject at the issuer, by which the person is found again, even after being forgotten.
  subject_hash bytea not null check (length(subject_hash) = 32),
  -- The person's subject at the issuer. Null: the person was forgotten.
  subject text,
  kind text not null check (kind in ('person', 'service')),
  email text,
  is_email_verified boolean not null default false,
  name text,
  -- The groups in the last answer of the issuer that had any, and when that answer came.
  groups text[] not null default '{}',
  groups_at timestamptz,
  created_at timestamptz not null,
  -- When the issuer last confirmed the person.
  confirmed_at timestamptz not null,
  suspended_at timestamptz,
  -- Sign-ins, sessions and tokens that were issued before this instant are no longer valid.
  not_before timestamptz,
  forgotten_at timestamptz,
  version bigint not null default 1,
  unique (issuer, subject_hash)
);

-- Organizations, with their rules for keys; docs/design/keys.md, Organizations, says how they are renamed and closed.
create table organization (
  id uuid primary key,
  slug text not null unique check (slug ~ '^[a-z0-9-]{1,63}$'),
  name text not null,
  status text not null default 'active' check (status in ('active', 'suspended', 'closed')),
  plan text,
  -- The instant from which weeks and months are counted: the creation of the organization, unless another one was set.
  anchor_at timestamptz not null check (anchor_at = date_trunc('milliseconds', anchor_at)),
  extra_usage_enabled boolean not null default false,
  extra_usage_cap_nanos bigint check (extra_usage_cap_nanos >= 0),
  created_at timestamptz not null default store_now(),
  -- Rises with each change, so that a caller who sends a change can say which version they have read.
  version bigint not null default 1,
  -- False: no word of a request or an answer is stored.
  keeps_content boolean not null default true,
  -- False until the first key is limited or put into a team. Until then, a batch of the ledger looks for neither
  -- limited keys nor teams.
  has_subjects boolean not null default false,
  -- False until the first limit for models is set. Until then, a batch of the ledger looks for no such limits.
  has_models boolean not null default false,
  -- How many days a secret works after its creation, and a key after its last use. Null: without limit.
  key_lifetime_max_days integer check (key_lifetime_max_days between 1 and 3650),
  key_unused_max_days integer check (key_unused_max_days between 1 and 3650),
  closed_at timestamptz check ((closed_at is not null) = (status = 'closed')),
  -- When the last raise (temporary increase of a limit) of the organization or of anybody in it ends. Until then, a
  -- batch of the ledger looks for raises. The value only rises.
  raised_until timestamptz,
  -- Until this instant, a window may be shorter than others because the organization's calendar changed, and a batch of
  -- the ledger looks for such windows. The value only rises.
  bridged_until timestamptz,
  -- The organization's own limits, in place of those of its plan (limits.sql, limit_array); null: it has none.
  own_limits bigint[] check (cardinality(own_limits) = 6)
);

-- Slugs that an organization had before, and those of deleted organizations. No slug is ever given to another organization.
create table organization_slug (
  slug text primary key,
  organization_id uuid not null
);
create index organization_slug_of_organization on organization_slug (organization_id);

-- A named group of keys in an organization. A removed team stays, since records name it. Teams that are not removed have
-- different names in their organization: whoever writes one holds the lock on the organization's row.
create table team (
  id uuid primary key,
  organization_id uuid not null references organization (id),
  name text not null,
  created_at timestamptz not null default store_now(),
  removed_at timestamptz,
  version bigint not null default 1
);
create index team_of_organization on team (organization_id, name);

-- A key: whose it is, what it is for, from where it may be used, and who made and last used it. A sign-in is a key, and so
-- is the caller of an identity token; lists have neither unless asked for.
create table api_key (
  id uuid primary key,
  organization_id uuid not null references organization (id),
  name text not null,
  scopes text[] not null check (cardinality(scopes) > 0),
  -- The models that the key may use. Null allows every model.
  models text[],
  created_at timestamptz not null default store_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  owner text,
  labels jsonb not null default '{}',
  -- Addresses and networks; null allows all.
  allow_from text[] check (cardinality(allow_from) > 0),
  created_by text not null default 'service',
  last_used_from text,
  version bigint not null default 1,
  kind text not null default 'key' check (kind in ('key', 'sign-in', 'jwt')),
  person_id uuid references person (id)
);
create index api_key_of_organization on api_key (organization_id, created_at);
create index api_key_of_person on api_key (person_id) where person_id is not null;

-- Lets no key change its person: a key keeps the person that it was made for, or stays without one. A request belongs to
-- the person of its key, so records need no column for the person, and usage stays with the person who used it
-- (docs/design/metering.md, Roll-ups).
create function api_key_keeps_its_person() returns trigger
  language plpgsql
  as $$
  begin
    raise exception 'The person of a key never changes: its requests are of that person. Make a new key.'
      using errcode = 'check_violation';
  end $$;

create trigger api_key_keeps_its_person before update of person_id on api_key
  for each row when (old.person_id is distinct from new.person_id)
  execute function api_key_keeps_its_person();

-- The secrets of keys. A key keeps its id through rotations; each rotation adds a secret with the next number.
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

-- The plans in force, on every node the same: those of the file that was changed last, and those that were made by
-- management (src/core/store/plan.ts). A null limit does not limit. A plan's limits count from `changed_at` on.
create table plan (
  name text primary key,
  source text not null check (source in ('file', 'management')),
  version bigint not null check (version >= 1),
  session_nanos bigint check (session_nanos >= 1),
  week_nanos bigint check (week_nanos >= 1),
  month_nanos bigint check (month_nanos >= 1),
  requests_per_minute bigint check (requests_per_minute >= 1),
  tokens_per_minute bigint check (tokens_per_minute >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1),
  changed_at timestamptz not null
);

-- When the file whose plans are in force was changed, by the store's clock. The table's one row is the lock under which plans
-- change.
create table plan_file (
  is_one boolean primary key default true check (is_one),
  changed_at timestamptz not null
);

insert into plan_file (changed_at) values ('-infinity');

-- Deletes what is left of an organization that was closed so long ago that its records are gone: all but its slugs, which
-- stay taken, and the audit log. For any other organization it deletes nothing, whoever calls it. Returns whether it
-- deleted anything.
create function organization_forget(closed uuid) returns boolean
  language plpgsql volatile
  as $$
  begin
    perform from organization where id = closed and closed_at < usage_upkept_at() - interval '15 months' for update;
    if not found or exists (select from kept_response where organization_id = closed) then return false; end if;
    insert into organization_slug (slug, organization_id) select slug, id from organization where id = closed
      on conflict do nothing;
    update operator set revoked_at = store_now() where organization_id = closed and revoked_at is null;
    delete from kept_response_total where organization_id = closed;
    delete from notice_destination where organization_id = closed;
    delete from limit_change where subject_id = closed
      or subject_id in (select unnest(array[subject_id, parent_id]) from usage_subject where organization_id = closed);
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
