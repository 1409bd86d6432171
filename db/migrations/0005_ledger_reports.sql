-- What an operator and the daily upkeep do with the book.

-- A compensating entry: a record of no request that adds to one window of now, or takes from it, down to nothing.
-- Boundaries stay. Answers what was added; null: no such organization, or no session is open. Done once per id.
create function usage_adjust(entry_id uuid, organization uuid, window_kind usage_window_kind, units bigint) returns bigint
  language plpgsql volatile
  as $$
  declare
    clock timestamptz;
    book usage_book;
    kind integer := array_position(enum_range(null::usage_window_kind), window_kind);
    starts timestamptz;
    ends timestamptz;
    added bigint;
  begin
    perform usage_lock(array[organization]);
    clock := store_now();
    select r.charged into added from usage_record r where r.request_id = entry_id;
    if found then
      return added;
    end if;
    book := usage_load(array[organization], clock);
    starts := book.starts_at[1][kind];
    ends := book.ends_at[1][kind];
    if ends is null or (window_kind = 'session' and not book.is_open[1]) then
      return null;
    end if;
    -- No total beyond 2^53 - 1 could be read exactly.
    added := greatest(least(units, 9007199254740991 - book.used[1][kind]), -book.used[1][kind]);
    insert into usage_record (
      request_id, organization_id, operation, model, stream, price_input, price_cached_input, price_cache_write, price_output,
      source, held, charged, uncharged, admitted_at, ended_at, outcome, recovered,
      input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, usage_source,
      session_starts_at, session_ends_at, week_starts_at, week_ends_at, month_starts_at, month_ends_at
    ) values (
      entry_id, organization, 'adjustment', '', false, 0, 0, 0, 0,
      case window_kind when 'extra' then 'extra'::usage_billing else 'plan' end, 0, added, 0, clock, clock, 'completed', false,
      0, 0, 0, 0, 0, 'counted',
      case window_kind when 'session' then starts end, case window_kind when 'session' then ends end,
      case window_kind when 'week' then starts end, case window_kind when 'week' then ends end,
      case when window_kind in ('month', 'extra') then starts end,
      case when window_kind in ('month', 'extra') then ends end
    );
    book.used[1][kind] := book.used[1][kind] + added;
    book.is_changed[1] := true;
    perform usage_save(book);
    return added;
  end $$;

-- The book against itself: each total beside the sum it must equal, where they differ. Windows whose records may have
-- been dropped by now are left out. `running` compares the count of open requests. With `begun_after` only windows that
-- began after it are compared, and of the records only those are read whose ids are not older by more than an hour.
create function usage_differences(begun_after timestamptz default null)
  returns table (organization_id uuid, kind text, starts_at timestamptz,
    used bigint, recorded bigint, held bigint, holding bigint)
  language sql stable
  as $$
    with since as (select coalesce(begun_after, store_now() - interval '12 months') as at),
    entries as (
      select r.organization_id, w.kind, w.starts_at, r.charged as recorded, 0::bigint as holding
      from usage_record r
      cross join lateral (values
        ('session'::usage_window_kind, r.session_starts_at), ('week', r.week_starts_at), ('month', r.month_starts_at),
        ('extra', r.month_starts_at)
      ) w (kind, starts_at)
      where r.request_id >= coalesce(usage_record_id(begun_after - interval '1 hour'), '00000000-0000-0000-0000-000000000000')
        and (r.source = 'extra') = (w.kind = 'extra') and w.starts_at is not null
      union all
      select h.organization_id, w.kind, w.starts_at, 0, h.units
      from usage_hold h
      cross join lateral (values
        ('session'::usage_window_kind, h.session_starts_at), ('week', h.week_starts_at), ('month', h.month_starts_at),
        ('extra', h.month_starts_at)
      ) w (kind, starts_at)
      where (h.source = 'extra') = (w.kind = 'extra')
    ),
    sums as (
      select e.organization_id, e.kind, e.starts_at, sum(e.recorded)::bigint as recorded, sum(e.holding)::bigint as holding
      from entries e group by 1, 2, 3
    )
    select coalesce(w.subject_id, s.organization_id), coalesce(w.kind, s.kind)::text, coalesce(w.starts_at, s.starts_at),
      coalesce(w.used, 0), coalesce(s.recorded, 0), coalesce(w.held, 0), coalesce(s.holding, 0)
    from usage_window w
    full join sums s on s.organization_id = w.subject_id and s.kind = w.kind and s.starts_at = w.starts_at
    cross join since
    where coalesce(w.starts_at, s.starts_at) > since.at
      and (coalesce(w.used, 0) <> coalesce(s.recorded, 0) or coalesce(w.held, 0) <> coalesce(s.holding, 0))
    union all
    select coalesce(n.subject_id, h.organization_id), 'running', null, 0, 0, coalesce(n.running, 0), coalesce(h.count, 0)
    from usage_now n
    full join (select o.organization_id, count(*) as count from usage_hold o group by 1) h on h.organization_id = n.subject_id
    where coalesce(n.running, 0) <> coalesce(h.count, 0)
  $$;

-- Makes the partitions of this month and of those to come, moves out of the default one what belongs in them, and drops
-- those whose every record is older than what is kept. Answers the names of what it made and dropped (with a minus).
-- Safe beside running batches, and beside itself.
create function usage_partitions() returns setof text
  language plpgsql volatile
  as $$
  declare
    -- No arguments: whoever may call this could otherwise have every record dropped (deploy/roles.sql).
    months_to_come constant integer := 3;
    months_kept constant integer := 13;
    this_month timestamp := date_trunc('month', store_now() at time zone 'UTC');
    month timestamp;
    next_month timestamp;
    partition text;
    old record;
  begin
    perform pg_advisory_xact_lock(hashtextextended('usage_partitions', 0));
    for ahead in 0..months_to_come loop
      month := this_month + make_interval(months => ahead);
      next_month := month + interval '1 month';
      partition := 'usage_record_' || to_char(month, 'YYYY_MM');
      continue when to_regclass(partition) is not null;
      execute format('create table %I (like usage_record including all)', partition);
      execute format(
        'with moved as (delete from usage_record_default where request_id >= %2$L and request_id < %3$L returning *)
         insert into %1$I select * from moved',
        partition, usage_record_id(month at time zone 'UTC'), usage_record_id(next_month at time zone 'UTC'));
      execute format('alter table usage_record attach partition %I for values from (%L) to (%L)',
        partition, usage_record_id(month at time zone 'UTC'), usage_record_id(next_month at time zone 'UTC'));
      return next partition;
    end loop;
    for old in
      select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'usage_record'::regclass and c.relname ~ '^usage_record_[0-9]{4}_[0-9]{2}$'
        and to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month'
          <= (store_now() at time zone 'UTC') - make_interval(months => months_kept)
    loop
      execute format('drop table %I', old.name);
      return next '-' || old.name;
    end loop;
    delete from usage_record_default where ended_at < store_now() - make_interval(months => months_kept);
    delete from usage_past where ends_at < store_now() - make_interval(months => months_kept + 1);
  end $$;

select usage_partitions();
