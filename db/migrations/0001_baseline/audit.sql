-- The audit in pieces: the sum of the records in each usage window, read once and kept (docs/design/metering.md, Audit).
-- Records are found by the numbers of their transactions, through an index even if the tables are small. The planner's cost
-- estimates are then high, and must not make the server compile the query, which takes half a second. The clock is read in
-- a subquery: if a volatile function itself were compared, every row would have to be read.

-- How far the audit has come. Records of every transaction below `read_until` are included in tallies (the sums of a
-- window's records), seals (tallies of windows that were found right) and roll-ups. `sealed_until` is how far the audit
-- log's chain vouches for the records. The row also has the findings of the last check, for nodes that did not check
-- themselves. `ahead` is added to the numbers of transactions; 0 on the server on which the database was made. `upkept_at` is
-- the time by which the upkeep tells what is old (usage_upkeep_goes_on), null before the first upkeep. It was last moved at
-- `upkept_by`. By it, records of requests that ended before `dropped_until` may be gone.
create table usage_audit (
  id boolean primary key default true check (id),
  ahead bigint not null default 0,
  read_until bigint not null,
  sealed_until bigint not null,
  looked_at timestamptz,
  differing integer not null default 0,
  unsealed integer not null default 0,
  upkept_at timestamptz,
  upkept_by timestamptz,
  dropped_until timestamptz not null default '-infinity'
);

insert into usage_audit (read_until, sealed_until)
select now.id, now.id from (select pg_current_xact_id()::text::bigint) now (id);

-- The time from which checks compare. From then on nothing has been deleted, also not while the store's clock was ahead.
create function usage_checked_from() returns timestamptz
  language sql stable parallel safe
  as $$ select greatest(store_now() - interval '12 months', dropped_until) from usage_audit $$;

-- On a server whose transaction numbers are lower than those that the audit has read (the database was restored there), raises
-- `ahead`, so that new records get numbers above those of all records. Returns `ahead`. The lock on the row excludes a
-- concurrent reading of records.
create function usage_go_on() returns bigint
  language plpgsql volatile
  set enable_seqscan = off set jit = off
  as $$
  declare
    own usage_audit;
    oldest bigint;
  begin
    select a.* into own from usage_audit a for update;
    oldest := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
    if oldest + own.ahead < own.read_until then
      own.ahead := greatest(own.read_until,
        (select max(r.xact) + 1 from usage_record r where r.xact >= own.read_until)) - oldest;
      update usage_audit set ahead = own.ahead;
    end if;
    return own.ahead;
  end $$;

-- Tallies: for each window, the records that were read since it was last sealed (usage_seal): the sum of their charges, and
-- their number.
create table usage_tally (
  subject_id uuid not null,
  kind usage_window_kind not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  recorded bigint not null,
  records bigint not null,
  primary key (subject_id, kind, starts_at)
) with (fillfactor = 50);

-- Seals: windows that have ended and whose total agreed with their records. If a clock stepped back, records can be added
-- to such a window afterwards. Their sum is a tally beside the seal, until the new total agrees too.
create table usage_seal (
  like usage_tally,
  sealed_at timestamptz not null,
  primary key (subject_id, kind, starts_at)
);
create index usage_seal_by_end on usage_seal using brin (ends_at) with (autosummarize = on);

-- The sums of a full check, added up piece by piece; empty while no full check runs. Only one runs at a time.
create unlogged table usage_recount (like usage_tally including all);

-- Sums up, for each window, the records of transactions whose number is at least `since` and below `until`. A record counts
-- in the organization's windows for the source that it was billed to (plan or extra usage). It counts in the windows of the
-- limited keys and teams that it names, whatever it was billed to.
create function usage_recorded(since bigint, until bigint)
  returns table (
    subject_id uuid, kind usage_window_kind, starts_at timestamptz, ends_at timestamptz, recorded bigint, records bigint
  )
  language sql stable
  as $$
    select s.id, w.kind, w.starts_at, max(w.ends_at), sum(r.charged)::bigint, count(*)
    from usage_record r
    cross join lateral (select r.organization_id as id, false as is_own union all select unnest(r.subjects), true) s
    cross join lateral (values
      ('session'::usage_window_kind, r.session_starts_at, r.session_ends_at), ('week', r.week_starts_at, r.week_ends_at),
      ('month', r.month_starts_at, r.month_ends_at), ('extra', r.month_starts_at, r.month_ends_at)
    ) w (kind, starts_at, ends_at)
    where r.xact >= since and r.xact < until and w.starts_at is not null
      and case when s.is_own then w.kind <> 'extra' else (r.source = 'extra') = (w.kind = 'extra') end
    group by 1, 2, 3
  $$;

-- Adds the records of further transactions to the sums, at most `most` transactions at a time; returns whether there are
-- more to read. It stops at the horizon, the transaction number below which every transaction has ended, so that no record
-- of one can appear later, whatever any clock says.
create function usage_audit_read(most bigint) returns boolean
  language plpgsql volatile
  set enable_seqscan = off set enable_sort = off set jit = off
  as $$
  declare
    since bigint;
    ahead bigint := usage_go_on();
    horizon bigint;
    until bigint;
  begin
    select a.read_until into since from usage_audit a;
    horizon := pg_snapshot_xmin(pg_current_snapshot())::text::bigint + ahead;
    until := least(horizon, since + most);
    insert into usage_tally as t
    select * from usage_recorded(since, until)
    on conflict (subject_id, kind, starts_at) do update
      set recorded = t.recorded + excluded.recorded, records = t.records + excluded.records;
    perform usage_roll_up(since, until);
    update usage_audit set read_until = until;
    return until < horizon;
  end $$;

-- Returns digests of records for the chain of the audit log, of transactions whose number is at least `since` and below
-- `until`. There is a row for each month of the records' IDs. It has a digest for each transaction, in the order of the
-- transactions: over all columns of its records, in the order of their IDs. The function sets the formats in which values
-- become text, and names the columns, so that neither another setting nor a column that is added later changes a digest.
create function usage_digests(since bigint, until bigint)
  returns table (month text, records bigint, nanos bigint, last_ended_at text, digests text)
  language sql stable
  set enable_seqscan = off set jit = off set timezone = 'UTC' set datestyle = 'ISO'
  as $$
    select t.month, sum(t.records)::bigint, sum(t.nanos)::bigint, max(t.ended_at)::text,
      string_agg(encode(t.digest, 'hex'), '' order by t.xact)
    from (
      select to_char(usage_record_time(r.request_id), 'YYYY-MM') as month, r.xact, count(*) as records,
        sum(r.charged) as nanos, max(r.ended_at) as ended_at,
        sha256(convert_to(string_agg(row(
          r.request_id, r.organization_id, r.key_id, r.operation, r.model, r.stream,
          r.price_input, r.price_cached_input, r.price_cache_write, r.price_output, r.price_search, r.input_count,
          r.source, r.held, r.charged, r.uncharged, r.admitted_at, r.ended_at,
          r.outcome, r.stopped_by, r.error_code, r.recovered,
          r.input_tokens, r.cached_input_tokens, r.cache_write_tokens, r.output_tokens, r.reasoning_tokens, r.usage_source,
          r.searches, r.session_starts_at, r.session_ends_at, r.session_limit, r.session_used_before, r.session_used_after,
          r.week_starts_at, r.week_ends_at, r.week_limit, r.week_used_before, r.week_used_after,
          r.month_starts_at, r.month_ends_at, r.month_limit, r.month_used_before, r.month_used_after,
          r.upstream, r.attempts, r.tried, r.first_part_ms, r.report_rejected, r.team_id, r.subjects, r.xact
        )::text, E'\n' order by r.request_id), 'UTF8')) as digest
      from usage_record r
      where r.xact >= since and r.xact < until
      group by 1, 2
    ) t
    group by 1
  $$;

-- Adds the records of transactions whose number is at least `since` and below `until` to the sums of a full check.
create function usage_count_anew(since bigint, until bigint) returns void
  language sql volatile
  set enable_seqscan = off set jit = off
  as $$
    insert into usage_recount as t
    select * from usage_recorded(since, until)
    on conflict (subject_id, kind, starts_at) do update
      set recorded = t.recorded + excluded.recorded, records = t.records + excluded.records
  $$;

-- Seals (marks as checked) past windows that no hold counts in and whose total is the sum of their records; returns how
-- many.
create function usage_seal_ended(most integer) returns integer
  language plpgsql volatile
  as $$
  declare
    sealed integer;
  begin
    with holding as materialized (
      select distinct s.id, w.starts_at from usage_hold h
      cross join lateral (select h.organization_id as id union all select unnest(h.subjects)) s
      cross join lateral (values (h.session_starts_at), (h.week_starts_at), (h.month_starts_at)) w (starts_at)
    ), ripe as (
      select t.* from usage_tally t
      cross join lateral (
        select * from usage_past p
        where p.subject_id = t.subject_id and p.kind = t.kind and p.starts_at = t.starts_at offset 0
      ) p
      left join lateral (
        select * from usage_seal s
        where s.subject_id = t.subject_id and s.kind = t.kind and s.starts_at = t.starts_at offset 0
      ) s on true
      where p.ends_at <= store_now() and p.used = t.recorded + coalesce(s.recorded, 0) and p.held = 0
        and not exists (select from holding h where h.id = t.subject_id and h.starts_at = t.starts_at)
      limit most
    ), gone as (
      delete from usage_tally t using ripe r
      where t.subject_id = r.subject_id and t.kind = r.kind and t.starts_at = r.starts_at
      returning t.*
    )
    insert into usage_seal as s
    select g.subject_id, g.kind, g.starts_at, g.ends_at, g.recorded, g.records, store_now() from gone g
    on conflict (subject_id, kind, starts_at) do update set
      recorded = s.recorded + excluded.recorded, records = s.records + excluded.records, sealed_at = excluded.sealed_at;
    get diagnostics sealed = row_count;
    return sealed;
  end $$;

-- For each hold and each window that it counts in, the nanos that the hold reserves there. It counts in windows of the
-- organization for the source that the hold is billed to (plan or extra usage), and in those of its other subjects.
create function usage_holding()
  returns table (subject_id uuid, kind usage_window_kind, starts_at timestamptz, nanos bigint)
  language sql stable
  as $$
    select s.id, w.kind, w.starts_at, h.nanos
    from usage_hold h
    cross join lateral (select h.organization_id as id, false as is_own union all select unnest(h.subjects), true) s
    cross join lateral (values
      ('session'::usage_window_kind, h.session_starts_at), ('week', h.week_starts_at), ('month', h.month_starts_at),
      ('extra', h.month_starts_at)
    ) w (kind, starts_at)
    where case when s.is_own then w.kind <> 'extra' else (h.source = 'extra') = (w.kind = 'extra') end
  $$;

-- Subjects whose count of running requests is not the number of their holds.
create function usage_miscounted() returns table (subject_id uuid, running bigint, holds bigint)
  language sql stable
  as $$
    select coalesce(n.subject_id, h.id), coalesce(n.running, 0), coalesce(h.count, 0)
    from usage_now n
    full join (
      select s.id, count(*) as count from usage_hold o
      cross join lateral (select o.organization_id as id union all select unnest(o.subjects)) s group by 1
    ) h on h.id = n.subject_id
    where coalesce(n.running, 0) <> coalesce(h.count, 0)
  $$;

-- Compares the ledger's tables with each other: returns each total that differs from the sum that it must equal. Rows of
-- kind `running` compare the count of open requests. `scope` says what the sum is made of:
-- - `full`: the sums of the full check (usage_recount), earlier use (usage_opening), and the records from `unread` on.
-- - `sealed`: seals, tallies, and the records not yet read.
-- - `open`: these too, but only for windows that are in force, that ended within a day, or to which something was added
--   since they were sealed.
--
-- Windows whose records may have been dropped are left out.
create function usage_differences(scope text default 'sealed', unread bigint default null)
  returns table (organization_id uuid, subject_id uuid, kind text, starts_at timestamptz,
    used bigint, recorded bigint, held bigint, holding bigint)
  language sql stable
  set enable_seqscan = off set jit = off
  as $$
    with moving as materialized (
      select r.subject_id, r.kind, r.starts_at, r.recorded, 0::bigint as holding
      from usage_recorded((select coalesce(unread, a.read_until) from usage_audit a), 9223372036854775807) r
      union all
      select t.subject_id, t.kind, t.starts_at, t.recorded, 0 from usage_recount t where scope = 'full'
      union all
      select t.subject_id, t.kind, t.starts_at, t.recorded, 0 from usage_tally t where scope <> 'full'
      union all
      select o.subject_id, o.kind, o.starts_at, o.nanos, 0 from usage_opening o where scope = 'full'
      union all
      select h.subject_id, h.kind, h.starts_at, 0, h.nanos from usage_holding() h
    ),
    totals as materialized (
      select w.subject_id, w.kind, w.starts_at, w.used, w.held from usage_window w where scope <> 'open'
      union
      select n.subject_id, w.kind, w.starts_at, w.used, w.held
      from usage_now n
      cross join lateral unnest(enum_range(null::usage_window_kind), n.starts_at, n.used, n.held) w (kind, starts_at, used, held)
      where scope = 'open' and w.starts_at is not null
      union
      select p.subject_id, p.kind, p.starts_at, p.used, p.held
      from usage_past p where scope = 'open' and p.ends_at > (select store_now() - interval '1 day')
      union
      select p.subject_id, p.kind, p.starts_at, p.used, p.held
      from (select distinct m.subject_id, m.kind, m.starts_at from moving m where scope = 'open') m
      cross join lateral (
        select * from usage_past p
        where p.subject_id = m.subject_id and p.kind = m.kind and p.starts_at = m.starts_at offset 0
      ) p
    ),
    entries as (
      select * from moving
      union all
      select s.subject_id, s.kind, s.starts_at, s.recorded, 0 from usage_seal s where scope = 'sealed'
      union all
      select s.subject_id, s.kind, s.starts_at, s.recorded, 0
      from totals t
      cross join lateral (
        select * from usage_seal s
        where s.subject_id = t.subject_id and s.kind = t.kind and s.starts_at = t.starts_at offset 0
      ) s
      where scope = 'open'
    ),
    sums as (
      select e.subject_id, e.kind, e.starts_at, sum(e.recorded)::bigint as recorded, sum(e.holding)::bigint as holding
      from entries e group by 1, 2, 3
    ),
    found as (
      select coalesce(w.subject_id, s.subject_id) as subject_id, coalesce(w.kind, s.kind)::text as kind,
        coalesce(w.starts_at, s.starts_at) as starts_at,
        coalesce(w.used, 0) as used, coalesce(s.recorded, 0) as recorded, coalesce(w.held, 0) as held,
        coalesce(s.holding, 0) as holding
      from totals w
      full join sums s on s.subject_id = w.subject_id and s.kind = w.kind and s.starts_at = w.starts_at
      where coalesce(w.starts_at, s.starts_at) > (select usage_checked_from())
        and (coalesce(w.used, 0) <> coalesce(s.recorded, 0) or coalesce(w.held, 0) <> coalesce(s.holding, 0))
      union all
      select r.subject_id, 'running', null, 0, 0, r.running, r.holds from usage_miscounted() r
    )
    select coalesce(o.organization_id, f.subject_id), case when o.organization_id is not null then f.subject_id end,
      f.kind, f.starts_at, f.used, f.recorded, f.held, f.holding
    from found f
    left join lateral (select s.organization_id from usage_subject s where s.subject_id = f.subject_id offset 0) o on true
  $$;

-- Stores the findings of a check for all nodes. `unsealed` counts the past windows that still have a tally.
create function usage_audit_done(differences integer) returns void
  language sql volatile
  as $$
    update usage_audit set looked_at = store_now(), differing = differences, unsealed = (
      select count(*) from usage_tally t
      cross join lateral (
        select * from usage_past p
        where p.subject_id = t.subject_id and p.kind = t.kind and p.starts_at = t.starts_at offset 0
      ) p
      where p.ends_at <= store_now())
  $$;
