-- Memberships, which say what people may do where; and the ways in which people sign in: sessions of browsers, sign-ins of
-- devices, and devices that wait for an answer (docs/identity.md).

-- The role of a person in an organization, or in the whole service if the row names no organization. A role given by hand
-- takes precedence over a role by a rule, so there may be one of each.
create table membership (
  id uuid primary key default gen_random_uuid(),
  person_id uuid not null references person (id),
  organization_id uuid references organization (id) on delete cascade,
  team_id uuid references team (id) on delete set null,
  role text not null check (role in ('member', 'organization-admin', 'viewer', 'admin')),
  scopes text[] not null check (cardinality(scopes) > 0),
  -- The models that the membership allows. Null allows every model.
  models text[],
  source text not null check (source in ('rule', 'hand')),
  created_at timestamptz not null,
  created_by text not null,
  -- When the membership ended. The row stays, so that this instant is known, and keys may do no more than it allowed.
  ended_at timestamptz,
  unique (person_id, organization_id, source),
  check ((organization_id is null) = (role in ('viewer', 'admin'))),
  check (organization_id is not null or team_id is null)
);
create unique index membership_for_service on membership (person_id, source) where organization_id is null;
create index membership_of_organization on membership (organization_id);

-- The team of a person's membership in an organization: a row with null if the membership has no team, and no row if there
-- is no membership. A removed team counts as none.
create function usage_team_of(organization uuid, person uuid) returns table (team_id uuid)
  language sql stable
  as $$
    select t.id from membership m left join team t on t.id = m.team_id and t.removed_at is null
    where m.person_id = person and m.organization_id = organization and m.ended_at is null
    order by m.source limit 1
  $$;

-- A browser that is signed in. Its cookie holds a secret, of which only the hash is kept.
create table browser_session (
  hash bytea primary key check (length(hash) = 32),
  kind text not null check (kind in ('console', 'device')),
  person_id uuid not null references person (id),
  issuer text not null,
  -- The session at the issuer (sid); when that ends, this one ends too.
  issuer_session text,
  -- The issuer's tokens, encrypted with SLUICE_SECRET_KEY.
  tokens bytea,
  created_at timestamptz not null,
  used_at timestamptz not null,
  -- When the issuer last confirmed the session. Until `asking_until`, only the node that set `asking_until` may ask the issuer
  -- again.
  confirmed_at timestamptz not null,
  asking_until timestamptz,
  -- Pages of the console send a secret besides the cookie (docs/console.md). A page gets it once, for a code that the
  -- sign-in gave to this browser.
  code_hash bytea check (length(code_hash) = 32),
  secret_hash bytea check (length(secret_hash) = 32)
);
create index browser_session_of_person on browser_session (person_id);
create index browser_session_of_issuer on browser_session (issuer, issuer_session) where issuer_session is not null;

-- A device that is signed in: a key of kind 'sign-in', whose secrets are its access tokens.
create table sign_in (
  key_id uuid primary key references api_key (id) on delete cascade,
  person_id uuid not null references person (id),
  issuer text not null,
  issuer_session text,
  tokens bytea,
  -- The user agent of the program that asked to sign in, and its address.
  agent text not null,
  address text not null,
  created_at timestamptz not null,
  -- When the sign-in ends by itself, if the issuer cannot be asked again.
  ends_at timestamptz,
  ended_at timestamptz,
  refreshing_by uuid,
  refreshing_until timestamptz
);
create index sign_in_of_person on sign_in (person_id);
create index sign_in_of_issuer on sign_in (issuer, issuer_session) where issuer_session is not null;

-- Refresh tokens of sign-ins. A token that was used stays, so that a second use is recognised.
create table refresh_token (
  hash bytea primary key check (length(hash) = 32),
  key_id uuid not null references sign_in (key_id) on delete cascade,
  created_at timestamptz not null,
  used_at timestamptz,
  -- The token that replaced this one, encrypted with SLUICE_SECRET_KEY.
  successor bytea
);
create index refresh_token_of_sign_in on refresh_token (key_id);

-- A device that waits until somebody approves it.
create table device_request (
  device_hash bytea primary key check (length(device_hash) = 32),
  user_hash bytea not null unique check (length(user_hash) = 32),
  agent text not null,
  address text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  interval_s integer not null,
  polled_at timestamptz,
  decision text check (decision in ('approved', 'denied')),
  person_id uuid references person (id),
  organization_id uuid references organization (id) on delete cascade,
  issuer_session text,
  tokens bytea
);
create index device_request_by_expiry on device_request (expires_at);
create index device_request_of_address on device_request (address);

-- How often something was used, such as the id of a logout token, which may be used once.
create table use_count (
  hash bytea primary key check (length(hash) = 32),
  uses integer not null,
  ends_at timestamptz not null
);
create index use_count_by_end on use_count (ends_at);
