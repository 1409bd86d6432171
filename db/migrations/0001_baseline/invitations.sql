-- Invitations: the first person who signs in through the issuer with this verified address gets the membership
-- (docs/identity.md, Invitations).
create table invitation (
  id uuid primary key,
  organization_id uuid not null references organization (id) on delete cascade,
  team_id uuid references team (id) on delete cascade,
  role text not null check (role in ('member', 'organization-admin')),
  issuer text not null,
  -- The invited address, in ASCII alone and without capital letters.
  email text not null,
  -- The limits of the invited person, in the order of `limit_array`; null: none of their own. Once the invitation is
  -- taken, they are in limit_value.
  limits bigint[] check (cardinality(limits) = 6),
  created_at timestamptz not null,
  -- Who made the invitation. Their role is looked up again when somebody takes the invitation.
  created_by text not null,
  expires_at timestamptz not null check (expires_at > created_at),
  state text not null default 'open' check (state in ('open', 'taken', 'revoked', 'expired')),
  ended_at timestamptz check ((ended_at is null) = (state = 'open')),
  ended_by text check ((ended_by is null) = (state = 'open')),
  -- The person who has taken the invitation.
  person_id uuid references person (id) on delete set null
);
create unique index invitation_open on invitation (issuer, email, organization_id) where state = 'open';
create index invitation_of_organization on invitation (organization_id, id);
