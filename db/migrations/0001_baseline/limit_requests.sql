-- Requests for a higher limit, by people who met a limit (docs/limits.md, Asking for more). An approval makes a raise, a
-- temporary increase of the limit, which is stored with all raises (limits.sql); the request and the decision are stored here.
create table limit_request (
  id uuid primary key,
  organization_id uuid not null references organization (id) on delete cascade,
  -- The person who asks.
  person_id uuid not null references person (id) on delete cascade,
  -- Whose limit it is, and for which models; '': for all.
  subject text not null check (subject in ('organization', 'team', 'person', 'key')),
  subject_id uuid not null,
  models text not null default '',
  limit_name text not null check (limit_name in
    ('session', 'week', 'month', 'requests_per_minute', 'tokens_per_minute', 'concurrent_requests')),
  -- The value of the limit when the person asked, and the value that the person asks for; null: the decision says how
  -- much.
  value bigint not null check (value > 0),
  asked bigint check (asked > 0),
  message text not null,
  -- The inference request that was refused.
  request_id uuid,
  created_at timestamptz not null,
  -- From this instant on, an open request can no longer be decided.
  expires_at timestamptz not null check (expires_at > created_at),
  -- An open request that has expired gets this state when its person asks again; readers see it as expired without that.
  state text not null default 'open' check (state in ('open', 'approved', 'declined', 'withdrawn', 'expired')),
  decided_at timestamptz check ((decided_at is null) = (state in ('open', 'expired'))),
  decided_by text check ((decided_by is null) = (state in ('open', 'expired'))),
  -- For an approval: the limit that was granted, and until when.
  granted bigint check ((granted is not null) = (state = 'approved')),
  until timestamptz check ((until is not null) = (state = 'approved')),
  -- For a declined request: why.
  reason text check ((reason is not null) = (state = 'declined'))
);
create index limit_request_of_organization on limit_request (organization_id, id);
create index limit_request_of_person on limit_request (person_id);
-- A person can have only one open request for the same limit.
create unique index limit_request_open on limit_request (person_id, organization_id, subject, subject_id, models, limit_name)
  where state = 'open';
