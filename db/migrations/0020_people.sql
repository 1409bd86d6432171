-- People: who comes in by an issuer, and what she may do where (docs/identity.md).

create table person (
  id uuid primary key,
  issuer text not null,
  -- SHA-256 of the subject, by which she is found again, even after she was forgotten.
  subject_hash bytea not null check (length(subject_hash) = 32),
  -- Null: forgotten.
  subject text,
  kind text not null check (kind in ('person', 'service')),
  email text,
  is_email_verified boolean not null default false,
  name text,
  -- The groups of the last answer that had them, and its instant.
  groups text[] not null default '{}',
  groups_at timestamptz,
  created_at timestamptz not null,
  -- When the issuer last vouched for her.
  confirmed_at timestamptz not null,
  suspended_at timestamptz,
  -- Sign-ins, sessions and tokens that were issued before no longer count.
  not_before timestamptz,
  forgotten_at timestamptz,
  version bigint not null default 1,
  unique (issuer, subject_hash)
);

-- The role of a person in an organization, or for the service where there is none. One by hand counts before one by a
-- rule, so there may be one of each.
create table membership (
  id uuid primary key default gen_random_uuid(),
  person_id uuid not null references person (id),
  organization_id uuid references organization (id) on delete cascade,
  team_id uuid references team (id) on delete set null,
  role text not null check (role in ('member', 'organization-admin', 'viewer', 'admin')),
  scopes text[] not null check (cardinality(scopes) > 0),
  -- Null allows every model.
  models text[],
  source text not null check (source in ('rule', 'hand')),
  created_at timestamptz not null,
  created_by text not null,
  -- A rule no longer gives it. It stays, so that it is known since when.
  ended_at timestamptz,
  unique (person_id, organization_id, source),
  check ((organization_id is null) = (role in ('viewer', 'admin'))),
  check (organization_id is not null or team_id is null)
);
create unique index membership_for_service on membership (person_id, source) where organization_id is null;
create index membership_of_organization on membership (organization_id);

-- A sign-in is a key, and so is the caller of an identity token; neither is in lists unless it is asked for.
alter table api_key
  add column kind text not null default 'key' check (kind in ('key', 'sign-in', 'jwt')),
  add column person_id uuid references person (id);
create index api_key_of_person on api_key (person_id) where person_id is not null;
