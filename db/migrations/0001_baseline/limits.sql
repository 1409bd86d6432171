-- The limits of keys, people and teams beside their organization's plan (docs/design/usage.md, Budgets), and raises of any of
-- them. Null does not limit, in all of these tables.

-- The limits that a new key gets: of a team or of an organization.
create table key_default (
  owner_id uuid primary key,
  session_nanos bigint check (session_nanos >= 1),
  week_nanos bigint check (week_nanos >= 1),
  month_nanos bigint check (month_nanos >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1),
  requests_per_minute bigint check (requests_per_minute >= 1),
  tokens_per_minute bigint check (tokens_per_minute >= 1)
);

-- The limits of a person, set by an administrator.
create table member_limit (
  organization_id uuid not null references organization (id) on delete cascade,
  person_id uuid not null references person (id),
  session_nanos bigint check (session_nanos >= 1),
  week_nanos bigint check (week_nanos >= 1),
  month_nanos bigint check (month_nanos >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1),
  requests_per_minute bigint check (requests_per_minute >= 1),
  tokens_per_minute bigint check (tokens_per_minute >= 1),
  primary key (organization_id, person_id)
);

-- The limits of each member without limits of her own: of a team or of an organization.
create table member_default (
  owner_id uuid primary key,
  session_nanos bigint check (session_nanos >= 1),
  week_nanos bigint check (week_nanos >= 1),
  month_nanos bigint check (month_nanos >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1),
  requests_per_minute bigint check (requests_per_minute >= 1),
  tokens_per_minute bigint check (tokens_per_minute >= 1)
);

-- Raises: limits that count until an instant, on top of those of an organization's plan, a team, a person or a key
-- (docs/design/usage.md, Raises). The clock alone ends one: whoever reads limits adds the raises whose end is ahead of
-- the store's clock, and no job runs.

-- A raise of each subject at most; another one takes its place. Null raises nothing. One that ended stays until then.
create table limit_raise (
  subject_id uuid primary key,
  organization_id uuid not null references organization (id) on delete cascade,
  session_nanos bigint check (session_nanos >= 1),
  week_nanos bigint check (week_nanos >= 1),
  month_nanos bigint check (month_nanos >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1),
  requests_per_minute bigint check (requests_per_minute >= 1),
  tokens_per_minute bigint check (tokens_per_minute >= 1),
  ends_at timestamptz not null,
  set_at timestamptz not null,
  set_by text not null
);
create index limit_raise_of_organization on limit_raise (organization_id);
create index limit_raise_by_end on limit_raise (ends_at);

-- A limit under a raise. A raise never lowers, and what is not limited stays so.
create function usage_raised(base bigint, raised bigint) returns bigint
  language sql immutable parallel safe
  as $$ select case when base < raised then raised else base end $$;

-- The raise of a subject that is in force.
create function usage_raise_of(subject uuid, at timestamptz) returns setof limit_raise
  language sql stable
  as $$ select * from limit_raise r where r.subject_id = subject and r.ends_at > at $$;

-- Whose limits changed: of an organization (its extra usage; its plan stands in `plan`), a team or a key, and as which
-- change of all. The numbers rise in the order of commits, for the head's row is their lock: a node that has read up to one
-- of them has missed none before it (docs/design/usage.md, Limits that change).
create table limit_change_head (
  is_one boolean primary key default true check (is_one),
  number bigint not null
);

insert into limit_change_head (number) values (0);

create table limit_change (
  subject_id uuid primary key,
  number bigint not null
);
create index limit_change_by_number on limit_change (number);

-- Notes that and tells every node, with the commit. To it no other limit is changed: it comes last in what changes one.
create function usage_limits_changed(subject uuid) returns void
  language sql volatile
  as $$
    with head as (
      update limit_change_head set number = number + 1 returning number
    )
    insert into limit_change select subject, h.number from head h
    on conflict (subject_id) do update set number = excluded.number;
    select pg_notify('limits_changed', '')
  $$;
