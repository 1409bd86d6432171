-- The monthly partitions of the table of records, and the server and timeline on which this database is.

-- The partitions of records, including those that are being detached and those that are already detached, whose tables only
-- remain to be dropped.
create function usage_partitions() returns table (name text, month timestamptz, is_attached boolean, is_leaving boolean)
  language sql stable
  as $$
    select c.relname::text,
      make_timestamptz(split_part(c.relname, '_', 3)::integer, split_part(c.relname, '_', 4)::integer, 1, 0, 0, 0, 'UTC'),
      i.inhrelid is not null, coalesce(i.inhdetachpending, false)
    from pg_class records
    join pg_class c on c.relnamespace = records.relnamespace and c.relkind = 'r' and c.relname ~ '^usage_record_[0-9]+_[0-9]{2}$'
    left join pg_inherits i on i.inhrelid = c.oid and i.inhparent = records.oid
    where records.oid = 'usage_record'::regclass
  $$;

-- The first ids of this month and of the next `ahead` months.
create function usage_months(ahead integer) returns setof uuid
  language sql stable
  as $$
    select usage_record_id((date_trunc('month', store_now() at time zone 'UTC') + make_interval(months => n)) at time zone 'UTC')
    from generate_series(0, ahead) n
  $$;

-- Makes the partition for an id, unless it exists. Nobody waits for that: attaching takes a lock that conflicts with
-- neither readers nor batches, as long as there is no default partition. The new table is empty and used by nobody.
create function usage_partition(id uuid) returns void
  language plpgsql volatile
  as $$
  declare
    starts timestamp := date_trunc('month', usage_record_time(id) at time zone 'UTC');
    partition text := 'usage_record_' || to_char(starts, 'YYYY_MM');
  begin
    if exists (select from usage_partitions() p where p.name = partition and p.is_attached and not p.is_leaving) then
      return;
    end if;
    perform pg_advisory_xact_lock(hashtextextended('usage_partition', 0));
    if exists (select from usage_partitions() p where p.name = partition and p.is_attached and not p.is_leaving) then
      return;
    end if;
    execute format('create table %I (like usage_record including all)', partition);
    perform usage_attach(partition);
  end $$;

-- Attaches a table as the partition for the month in its name.
create function usage_attach(partition text) returns void
  language plpgsql volatile
  as $$
  declare
    starts timestamptz := (select p.month from usage_partitions() p where p.name = partition);
  begin
    execute format('alter table usage_record attach partition %I for values from (%L) to (%L)', partition,
      usage_record_id(starts), usage_record_id((starts at time zone 'UTC' + interval '1 month') at time zone 'UTC'));
  end $$;

-- The time by which the upkeep decides what is old: never later than the store's clock. Before the first upkeep nothing is.
create function usage_upkept_at() returns timestamptz
  language sql stable parallel safe
  as $$ select least(store_now(), coalesce(upkept_at, '-infinity')) from usage_audit $$;

-- Moves the upkeep's own time on to the store's, by a day an hour at most, however many nodes there are and however often
-- they start; returns how many days are left. Deleting what is old cannot be undone, so a clock that is years ahead until
-- somebody notices must not make everything old at once. When the clock is set back, the upkeep's time follows it as slowly,
-- so that a clock that was behind once does not stop the deleting for years.
create function usage_upkeep_goes_on() returns integer
  language sql volatile
  as $$
    update usage_audit a set upkept_by = clock.at, upkept_at = greatest(a.upkept_at - interval '1 day',
      least(clock.at, coalesce(a.upkept_at, clock.at) + interval '1 day'))
    from (select store_now() as at offset 0) clock
    where a.upkept_by is null or abs(extract(epoch from clock.at - a.upkept_by)) >= 3000;
    update usage_audit set dropped_until = greatest(dropped_until, usage_upkept_at() - interval '13 months')
    where exists (select from usage_rolled r where r.starts_at < (select usage_upkept_at() - interval '13 months'));
    select date_part('day', store_now() - usage_upkept_at())::integer
  $$;

-- Drops a month that ended longer ago than records are kept, for callers that cannot detach it concurrently: the whole
-- table is then locked for a moment. No caller can drop more than is due (deploy/roles.sql). A month stays if it has
-- records of requests that ended within the time for which records are kept; under the lock nobody can write any more of
-- these.
create function usage_drop_month(partition text) returns void
  language plpgsql volatile
  as $$
  declare
    kept_since timestamp := (usage_upkept_at() at time zone 'UTC') - interval '13 months';
    old record;
    has_young boolean;
  begin
    select p.* into old from usage_partitions() p
    where p.name = partition and p.month at time zone 'UTC' + interval '1 month' <= kept_since;
    if not found then
      return;
    end if;
    if old.is_attached then
      execute format('lock table only usage_record, only %I in access exclusive mode', partition);
    end if;
    execute format('select exists (select from %I where ended_at >= $1)', partition)
    into has_young using kept_since at time zone 'UTC';
    if has_young and not old.is_attached then
      perform usage_attach(partition);
    elsif not has_young then
      execute format('drop table %I', partition);
    end if;
  end $$;

-- Computes anew the summaries in part number `part` of `parts` of each BRIN index on the tables from which old rows are
-- deleted. Deleting rows narrows no summary. Otherwise a page that is used again would be read for every time between the
-- oldest row that it ever had and its newest.
create function usage_narrow(part integer, parts integer) returns void
  language sql volatile
  as $$
    select count(brin_desummarize_range(b.id, b.page)), count(brin_summarize_range(b.id, b.page))
    from (
      select i.oid::regclass as id, n * z.pages as page
      from pg_class i
      join pg_index x on x.indexrelid = i.oid
      cross join lateral (
        select coalesce((select o.option_value::integer from pg_options_to_table(i.reloptions) o
          where o.option_name = 'pages_per_range'), 128) as pages) z
      cross join lateral (
        select 1 + pg_relation_size(x.indrelid) / current_setting('block_size')::integer / z.pages as count) r
      cross join lateral generate_series(r.count * part / parts, r.count * (part + 1) / parts - 1) n
      where i.relam = (select a.oid from pg_am a where a.amname = 'brin')
        and x.indrelid = any ('{usage_past,usage_seal,usage_hour,usage_day,usage_total}'::regclass[])
    ) b
  $$;

-- The server and the timeline of this database. Null if the server does not tell them, as some managed servers do not.
create function usage_place(out server text, out timeline integer)
  language plpgsql stable
  as $$
  begin
    server := (select c.system_identifier::text from pg_control_system() c);
    timeline := ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer;
  exception when others then
    server := null;
    timeline := null;
  end $$;

select usage_partition(id) from usage_months(6) id;
