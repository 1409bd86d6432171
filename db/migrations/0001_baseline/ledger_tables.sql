-- The tables of the ledger: windows, holds of running requests, records of ended ones. src/core/store/ledger.ts describes
-- the verbs and their answers. Amounts are nanos (10⁻⁹) of the ledger's one currency; IDs are bare UUIDs.

-- The cost of tokens in nanos (10⁻⁹), at a price in picos (10⁻¹²) a token. Only the total is rounded up to a whole nano.
create function usage_cost(tokens bigint, price bigint) returns bigint
  language sql immutable parallel safe
  as $$ select (tokens * price + 999) / 1000 $$;

create type usage_window_kind as enum ('session', 'week', 'month', 'extra');
create type usage_billing as enum ('plan', 'extra');

-- The state of one subject, which is an organization, a team, a person or a key, or one of them for a pattern of models:
-- how many requests run, and the windows in force, in arrays by the order of their kinds. A session that is not open has
-- null bounds. One row of a subject is live. It is updated in place 32 times, and then written anew as the next generation.
-- However long vacuum has to wait, a reader therefore passes 32 versions at most: the versions of older generations come
-- before the newest in the index (docs/design/metering.md, Counters that wait for no vacuum).
create table usage_now (
  subject_id uuid not null,
  generation bigint not null,
  updates integer not null,
  running bigint not null,
  starts_at timestamptz[] not null,
  ends_at timestamptz[] not null,
  used bigint[] not null,
  held bigint[] not null,
  primary key (subject_id, generation)
) with (fillfactor = 50);

-- A new subscription anchor, and when it takes effect. For months that is `month_from`, the end of the month that was
-- running when it was set. For weeks it is `week_from`, the first end of a week after that. Before the first row takes
-- effect, the organization's own anchor counts.
--
-- A row with a zone is a calendar. It takes effect at the end of the month, and at the end of the week, that were running when it
-- was set. Its weeks begin on a day of the week, 1 for Monday to 7 for Sunday, and its months on a day of the month. If the
-- calendar has no boundary at that instant, a shorter window reaches from there to its first boundary, `month_to` or `week_to`. A
-- whole window would have begun at `month_whole_at` or `week_whole_at`. Without a shorter window these two are null, and
-- `month_to` and `week_to` equal `month_from` and `week_from`.
create table usage_anchor (
  organization_id uuid not null,
  month_from timestamptz not null,
  week_from timestamptz not null,
  anchor_at timestamptz not null check (anchor_at = date_trunc('milliseconds', anchor_at)),
  zone text,
  week_starts integer check (week_starts between 1 and 7),
  month_starts integer check (month_starts between 1 and 31),
  month_to timestamptz not null check (month_to >= month_from),
  month_whole_at timestamptz check (month_whole_at < month_from),
  week_to timestamptz not null check (week_to >= week_from),
  week_whole_at timestamptz check (week_whole_at < week_from),
  primary key (organization_id, month_from),
  check (num_nulls(zone, week_starts, month_starts) in (0, 3))
);

-- Windows that are no longer in force, one row each; their totals are never reset. The batch that finds that a window has
-- ended moves the window here. Later settlements are added here too.
create table usage_past (
  subject_id uuid not null,
  kind usage_window_kind not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null check (ends_at > starts_at),
  used bigint not null,
  held bigint not null,
  primary key (subject_id, kind, starts_at)
) with (fillfactor = 50);
create index usage_past_by_end on usage_past using brin (ends_at) with (autosummarize = on);

-- Every window that was ever used. `used` is the sum of the records' charges, `held` that of the holds. Kind `extra` is
-- what extra usage took in a billing month.
create view usage_window as
  select n.subject_id, w.kind, w.starts_at, w.ends_at, w.used, w.held
  from usage_now n
  cross join lateral unnest(enum_range(null::usage_window_kind), n.starts_at, n.ends_at, n.used, n.held)
    w (kind, starts_at, ends_at, used, held)
  where w.starts_at is not null
  union all
  select p.subject_id, p.kind, p.starts_at, p.ends_at, p.used, p.held from usage_past p;

-- The subjects of the ledger besides organizations: people, teams, and keys that are limited, are in a team or belong to a
-- person. A person of an organization is a subject between the person's keys and their teams (docs/design/usage.md, Budgets):
-- all keys, sign-ins and identity tokens of the person in that organization share its counters. It stays one subject for as
-- long as the ledger is kept, whichever team the person is in.
-- - `counted_from`: since when its usage is counted, from then on for good; null: it was never limited.
-- - `summed_at`: when the usage before `counted_from` was added.
-- - `person_id`: set if the row is a person.
-- - `member_id`: in the row of a key, the subject of the person who owns it.
-- - `parent_id` and `models`: in a row that limits a key, a person, a team or an organization for a pattern of models, that
--   subject and the pattern, a model's public id or `prefix/*`.
create table usage_subject (
  subject_id uuid primary key,
  organization_id uuid not null,
  team_id uuid,
  session_nanos bigint check (session_nanos >= 1),
  week_nanos bigint check (week_nanos >= 1),
  month_nanos bigint check (month_nanos >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1),
  counted_from timestamptz,
  summed_at timestamptz,
  requests_per_minute bigint check (requests_per_minute >= 1),
  tokens_per_minute bigint check (tokens_per_minute >= 1),
  person_id uuid,
  member_id uuid,
  parent_id uuid,
  models text check ((models is null) = (parent_id is null))
);
create index usage_subject_of_team on usage_subject (team_id);
create index usage_subject_of_member on usage_subject (member_id) where member_id is not null;
create index usage_subject_of_person on usage_subject (person_id) where person_id is not null;
create index usage_subject_of_models on usage_subject (parent_id) where parent_id is not null;

-- The use of a window before its subject was first counted: the sum of records that do not name the subject.
create table usage_opening (
  subject_id uuid not null,
  kind usage_window_kind not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  nanos bigint not null,
  primary key (subject_id, kind, starts_at)
);

-- One row per running request. There is no index on the lease: each extension of a lease would then be a new index entry.
create table usage_hold (
  request_id uuid primary key,
  organization_id uuid not null,
  key_id uuid not null,
  operation text not null,
  model text not null,
  stream boolean not null,
  price_input bigint not null,
  price_cached_input bigint not null,
  price_cache_write bigint not null,
  price_output bigint not null,
  -- `price_search` is null if the model has no price for searches, `input_count` if the operation has one input.
  price_search bigint,
  input_count integer,
  source usage_billing not null,
  nanos bigint not null,
  output_tokens bigint not null,
  admitted_at timestamptz not null,
  lease_until timestamptz not null,
  -- The windows that the request was admitted in, their limits, and what was used of them just before.
  session_starts_at timestamptz not null,
  session_ends_at timestamptz not null,
  session_limit bigint,
  session_used bigint not null,
  week_starts_at timestamptz not null,
  week_ends_at timestamptz not null,
  week_limit bigint,
  week_used bigint not null,
  month_starts_at timestamptz not null,
  month_ends_at timestamptz not null,
  month_limit bigint,
  month_used bigint not null,
  -- The numbers of the last growth and of the last checkpoint; 0: there was none.
  growth integer not null default 0,
  checkpoint integer not null default 0,
  input_tokens bigint not null default 0,
  cached_input_tokens bigint not null default 0,
  cache_write_tokens bigint not null default 0,
  produced_tokens bigint not null default 0,
  reasoning_tokens bigint not null default 0,
  usage_source text not null default 'counted',
  -- The key's team at the admission, and the limited subjects in whose windows the request counts besides the
  -- organization's.
  team_id uuid,
  subjects uuid[],
  -- The length of the lease: how far ahead `lease_until` may lie.
  lease_ms bigint not null,
  -- Whether the request came with an idempotency key: if its node is gone, the request is charged nothing, because its
  -- client asks again with the same key, and pays once.
  is_repeatable boolean not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- The number by which a record of this transaction is found: the transaction's, plus `usage_audit.ahead`. The audit has read
-- the numbers of ended transactions alone, so a number that it has read already means that the database was restored on
-- another server, where transactions are numbered from the start again.
create function usage_xact() returns bigint
  language plpgsql volatile
  as $$
  declare
    number bigint := pg_current_xact_id()::text::bigint;
    ahead bigint;
    read_until bigint;
  begin
    select a.ahead, a.read_until into ahead, read_until from usage_audit a where a.id;
    if number + ahead < read_until then
      ahead := usage_go_on();
    end if;
    return number + ahead;
  end $$;

-- One row per ended request, never changed. A request that was given up before its admission was answered has no windows. A
-- partition holds a month of ids (UUIDv7 sorts by time). There is no default partition: it would be locked whenever a month is
-- made. A node whose clock is far off has its month made when its first request ends (docs/design/metering.md, Partitions).
create table usage_record (
  request_id uuid primary key,
  organization_id uuid not null,
  key_id uuid,
  operation text not null,
  model text not null,
  stream boolean not null,
  price_input bigint not null,
  price_cached_input bigint not null,
  price_cache_write bigint not null,
  price_output bigint not null,
  -- `price_search` is null if the model has no price for searches, `input_count` if the operation has one input.
  price_search bigint,
  input_count integer,
  source usage_billing not null,
  held bigint not null,
  charged bigint not null,
  uncharged bigint not null,
  admitted_at timestamptz not null,
  ended_at timestamptz not null,
  outcome text not null,
  -- The limit that ended a running answer: whose limit, the window, and the pattern of a limit for models.
  stopped_by jsonb,
  error_code text,
  recovered boolean not null,
  input_tokens bigint not null,
  cached_input_tokens bigint not null,
  cache_write_tokens bigint not null,
  output_tokens bigint not null,
  reasoning_tokens bigint not null,
  usage_source text not null,
  -- The number of searches that the charge includes.
  searches integer,
  session_starts_at timestamptz,
  session_ends_at timestamptz,
  session_limit bigint,
  session_used_before bigint,
  session_used_after bigint,
  week_starts_at timestamptz,
  week_ends_at timestamptz,
  week_limit bigint,
  week_used_before bigint,
  week_used_after bigint,
  month_starts_at timestamptz,
  month_ends_at timestamptz,
  month_limit bigint,
  month_used_before bigint,
  month_used_after bigint,
  upstream text,
  attempts integer,
  -- All attempts at engines, if there was more than one.
  tried jsonb,
  first_part_ms bigint,
  -- The engine's usage report if it was not accepted as it came, and the reason.
  report_rejected jsonb,
  team_id uuid,
  subjects uuid[],
  -- The number of the transaction that wrote the record, by which the audit knows what it has read
  -- (docs/design/metering.md, Audit).
  xact bigint not null default usage_xact()
) partition by range (request_id);
create index usage_record_by_xact on usage_record using brin (xact) with (autosummarize = on);
-- Finds records by when they ended, whatever month their ids are of. The index takes 24 kB for 130,000 records.
create index usage_record_by_end on usage_record using brin (ended_at) with (autosummarize = on);

-- Requests that were refused, so that their receipts can say so: src/core/store/refused.ts. They are part of no sum.
create table usage_refusal (
  request_id uuid primary key,
  organization_id uuid not null,
  -- The second of refused_at, since 1970. For each second an organization has at most ten rows, numbered by `place`.
  second bigint not null,
  place smallint not null,
  key_id uuid not null,
  operation text not null,
  -- Null if the body was refused before it was understood, or names a model that does not exist.
  model text,
  stream boolean,
  error_code text not null,
  refused_at timestamptz not null,
  -- The message that the client got, without what it quotes of the request.
  error_message text not null,
  -- The limit that the request met, as it was then: LimitMet in src/core/inference/fault.ts. Null: it met none.
  limit_met jsonb,
  unique (organization_id, second, place)
);

-- Estimates that are learned from the reports of engines and survive a restart: src/core/store/calibration.ts. The code
-- that reads them judges whether they are plausible.

-- `ratio`: tokens for each byte of text. `spread`: the mean distance of single inputs from this ratio. `bytes`: the bytes
-- that the ratio is based on. `template`: the tokens of an input without any text.
create table input_calibration (
  model_id text primary key,
  ratio double precision not null,
  spread double precision not null,
  bytes double precision not null,
  template double precision not null,
  updated_at timestamptz not null
) with (fillfactor = 50);

-- Sums over the complete answers of a route: an upstream and its model. Older answers count less and less. Code units are
-- those of UTF-16. The columns that begin with `whole` are the sums over answers that were not streamed.
create table output_calibration (
  route text primary key,
  tokens double precision not null,
  deltas double precision not null,
  code_units double precision not null,
  whole_tokens double precision not null,
  whole_code_units double precision not null,
  updated_at timestamptz not null
) with (fillfactor = 50);

-- These tables show that a store has gone back to an earlier state, because a replica took over without the last commits of its
-- primary, or because a backup was restored. Nodes remember the last answers that they got. If the store no longer has what
-- these say, that is noted here (docs/design/metering.md, A store that wakes up in the past).

-- The id of this ledger, which its copies have too. What nodes remember of the ledger elsewhere is stored under this id.
create table usage_ledger (
  id boolean primary key default true check (id),
  ledger_id uuid not null default gen_random_uuid(),
  -- The currency in which every amount of the ledger is counted: that of the first start, for good. Null: no node has
  -- started.
  currency text
);

insert into usage_ledger default values;

-- An amount as clients read it: {"amount": "0.000213440", "currency": "USD"}.
create function usage_money(nanos bigint) returns jsonb
  language sql stable
  as $$ select jsonb_build_object('amount', (nanos::numeric / 1000000000)::numeric(30, 9)::text, 'currency', l.currency)
        from usage_ledger l $$;

-- The servers, and their timelines, on which nodes have found this ledger. A promotion begins a new timeline.
create table usage_timeline (
  server text not null,
  timeline integer not null,
  seen_at timestamptz not null,
  primary key (server, timeline)
);

-- Requests whose settlement was confirmed to a node, and whose record is not there any more.
create table usage_lost (
  request_id uuid primary key,
  organization_id uuid not null,
  charged bigint not null,
  noticed_at timestamptz not null
);
