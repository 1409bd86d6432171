-- Limits (docs/limits.md): a value of up to six limits, which belongs to a subject: an organization, a team, a person in an
-- organization (the ledger's id of a member), or a key. In each column, null sets nothing, so that the limit is inherited,
-- and 0 means that it is not limited here, whatever would be inherited.
--
-- The `kind` of a value:
-- - `own`: the limits of the subject itself; those of an organization replace its plan's, limit by limit.
-- - `keys` and `members`: the limits of the keys and the people of a team or an organization that have none of their own.
-- - `raise`: the limits in force until an instant, each above the one that it raises.
--
-- `models`: the models that the value is for: '' for all, an id, or `prefix/*`. `counted_id`: the subject of the ledger
-- that counts it.

-- The id of the subject that limits an organization, a team, a person or a key for a pattern of models: a public id, or
-- `prefix/*`.
create function usage_models_subject(parent uuid, pattern text) returns uuid
  language sql immutable
  as $$ select md5(parent::text || ' ' || pattern)::uuid $$;

-- The subject of the ledger that counts the limits of a value: the subject itself, or that of `usage_models_subject`, whose
-- expression is repeated here because a restore of a dump computes the column without a search path.
create function limit_counted(subject uuid, models text) returns uuid
  language sql immutable
  as $$ select case models when '' then subject else md5(subject::text || ' ' || models)::uuid end $$;

create table limit_value (
  subject_id uuid not null,
  organization_id uuid not null references organization (id) on delete cascade,
  kind text not null check (kind in ('own', 'keys', 'members', 'raise')),
  models text not null default '' check (models = '' or kind in ('own', 'raise')),
  session_nanos bigint check (session_nanos >= 0),
  week_nanos bigint check (week_nanos >= 0),
  month_nanos bigint check (month_nanos >= 0),
  concurrent_requests bigint check (concurrent_requests >= 0),
  requests_per_minute bigint check (requests_per_minute >= 0),
  tokens_per_minute bigint check (tokens_per_minute >= 0),
  until timestamptz check ((until is not null) = (kind = 'raise')),
  set_at timestamptz not null,
  set_by text not null,
  counted_id uuid not null generated always as (limit_counted(subject_id, models)) stored,
  primary key (subject_id, kind, models)
);
create index limit_value_of_organization on limit_value (organization_id);
create index limit_value_by_end on limit_value (until) where kind = 'raise';
create index limit_value_raised on limit_value (counted_id) where kind = 'raise';

-- The six limits of a value in the order in which functions pass them: three windows, requests at a time, and two rates.
create function limit_array(v limit_value) returns bigint[]
  language sql immutable
  as $$
    select array[v.session_nanos, v.week_nanos, v.month_nanos, v.concurrent_requests, v.requests_per_minute,
      v.tokens_per_minute]
  $$;

-- For each limit, the first of these three values that sets it, and in `origins` the name of that value. Null in a value
-- sets nothing.
create function limit_chosen(own bigint[], team bigint[], organization bigint[])
  returns table (limits bigint[], origins text[])
  language sql immutable
  as $$
    select array_agg(nullif(coalesce(l.own, l.team, l.organization), 0) order by l.n),
      array_agg(case when l.own is not null then 'own' when l.team is not null then 'team'
        when l.organization is not null then 'organization' end order by l.n)
    from unnest(own, team, organization) with ordinality l (own, team, organization, n)
  $$;

-- A limit with a raise applied. A raise never lowers a limit, and what is not limited stays so.
create function usage_raised(base bigint, raised bigint) returns bigint
  language sql immutable parallel safe
  as $$ select case when base < raised then raised else base end $$;

-- A limit of an organization: its own or else its plan's, with its raise applied.
create function usage_own(plan bigint, own bigint, raised bigint) returns bigint
  language sql immutable parallel safe
  as $$ select usage_raised(nullif(coalesce(own, plan), 0), raised) $$;

-- The raise (temporary increase of limits) that is in force for a subject of the ledger.
create function usage_raise_of(counted uuid, at timestamptz) returns setof limit_value
  language sql stable
  as $$ select * from limit_value r where r.counted_id = counted and r.kind = 'raise' and r.until > at $$;

-- Whose limits changed: the subject, an organization (for its extra usage; changes of its plan are in `plan`), a team or a
-- key, with the number of the change among all changes. The numbers rise in the order of commits, because each change locks
-- the row of limit_change_head: a node that has read up to one number has missed none before it (docs/design/usage.md,
-- Limits that change).
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

-- Notes that the limits of these subjects changed, and tells every node at the commit. Until the commit no other transaction
-- can change a limit, so a transaction that changes some should call this last, and once: each further call has to read past
-- the versions that the earlier ones left of the head's row.
create function usage_limits_changed(subjects uuid[]) returns void
  language sql volatile
  as $$
    with head as (
      update limit_change_head set number = number + 1 where cardinality(subjects) > 0 returning number
    )
    insert into limit_change select distinct s.id, h.number from head h, unnest(subjects) s (id)
    on conflict (subject_id) do update set number = excluded.number;
    select pg_notify('limits_changed', '') where cardinality(subjects) > 0
  $$;
