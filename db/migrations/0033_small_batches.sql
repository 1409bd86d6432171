-- Batches of few commands cost less: nearly all are of one organization, and what a statement takes is mostly its beginning.
-- What is counted, and what is answered, is as 0003, 0004 and 0029 say.

-- Takes the locks as 0003 does. One is taken by an expression, which costs less than a statement. Either way all that
-- follows sees what was committed during the wait.
create or replace function usage_lock(organizations uuid[]) returns timestamptz
  language plpgsql
  as $$
  declare
    taken text;
  begin
    if current_setting('transaction_isolation') <> 'read committed' then
      raise exception 'the ledger works in READ COMMITTED alone, and this transaction is %',
        upper(current_setting('transaction_isolation')) using errcode = 'invalid_transaction_state';
    end if;
    if cardinality(organizations) = 1 then
      taken := pg_advisory_xact_lock(uuid_hash_extended(organizations[1], 0));
    else
      perform pg_advisory_xact_lock(lock)
      from (select distinct uuid_hash_extended(id, 0) as lock from unnest(organizations) id order by 1 offset 0) l;
    end if;
    return store_now();
  end $$;

-- Whether the session is open and the week and the month are those of now, by a row's bounds.
create function usage_is_open(starts timestamptz[], ends timestamptz[], clock timestamptz) returns boolean
  language sql immutable
  as $$
    select coalesce(ends[1] > clock and least(ends[2], ends[3]) > clock and greatest(starts[2], starts[3]) <= clock, false)
  $$;

-- Reads the state of organizations as 0029 does. That of one needs no aggregates, whose preparation costs more than the rows.
create or replace function usage_load(organizations uuid[], clock timestamptz) returns usage_book
  language plpgsql volatile
  as $$
  declare
    book usage_book;
    now record;
  begin
    if cardinality(organizations) = 1 then
      select organizations, null, array[n.generation], array[coalesce(n.updates, 0)], array[coalesce(n.running, 0)], null,
        array[o.extra_usage_enabled], array[o.has_subjects],
        array[usage_is_open(n.starts_at, n.ends_at, clock)],
        '{f}', coalesce(n.starts_at, '{null,null,null,null}'), coalesce(n.ends_at, '{null,null,null,null}'),
        coalesce(n.used, '{0,0,0,0}'), coalesce(n.held, '{0,0,0,0}'), array[null, null, null, o.extra_usage_cap_units],
        '{}', null, null, null, o.raised_until > clock, null
      into book
      from (select organizations[1] as id) i
      left join lateral (
        select * from usage_now n where n.subject_id = i.id order by n.generation desc limit 1
      ) n on true
      left join lateral (select * from organization o where o.id = i.id offset 0) o on true;
    else
      -- Put in order once, and not by each aggregate.
      select organizations, null, array_agg(i.generation), array_agg(coalesce(i.updates, 0)),
        array_agg(coalesce(i.running, 0)), null, array_agg(i.extra_usage_enabled), array_agg(i.has_subjects),
        array_agg(usage_is_open(i.starts_at, i.ends_at, clock)),
        array_fill(false, array[cardinality(organizations)]), usage_concat(coalesce(i.starts_at, array_fill(null::timestamptz, array[4]))),
        usage_concat(coalesce(i.ends_at, array_fill(null::timestamptz, array[4]))),
        usage_concat(coalesce(i.used, '{0,0,0,0}')), usage_concat(coalesce(i.held, '{0,0,0,0}')),
        usage_concat(array[null, null, null, i.extra_usage_cap_units]), '{}', null, null, null,
        bool_or(i.raised_until > clock), null
      into book
      from (
        select n.*, o.extra_usage_enabled, o.extra_usage_cap_units, o.has_subjects, o.raised_until
        from unnest(organizations) with ordinality i (id, position)
        left join lateral (
          select * from usage_now n where n.subject_id = i.id order by n.generation desc limit 1
        ) n on true
        left join lateral (select * from organization o where o.id = i.id offset 0) o on true
        order by i.position
      ) i;
    end if;
    for owner in 1..cardinality(organizations) loop
      continue when book.is_open[owner];
      select w.* into now from usage_windows_at(organizations[owner], clock) w;
      book.is_open[owner] := now.is_open;
      book := usage_roll(owner, now.starts_at, now.ends_at, book);
    end loop;
    return book;
  end $$;

-- The ids of admissions that have a record, as 0004 says.
create or replace function usage_over(commands usage_admit_command[]) returns uuid[]
  language plpgsql stable
  as $$
  declare
    requests uuid[] := array[commands[1].request_id];
  begin
    if cardinality(commands) > 1 then
      requests := array(select c.request_id from unnest(commands) c order by 1);
    end if;
    return array(
      select r.request_id from usage_record r where r.request_id = any (requests)
        and r.request_id >= requests[1] and r.request_id <= requests[cardinality(requests)]);
  end $$;

-- Writes a row into the table into which every admission writes, and takes it back: it fails where an admission would. A node
-- asks each second whether it can admit, and a function is compiled once.
create function usage_trial() returns void
  language plpgsql volatile
  as $$
  begin
    insert into usage_hold (
      request_id, organization_id, key_id, operation, model, stream,
      price_input, price_cached_input, price_cache_write, price_output, source, units, output_tokens,
      admitted_at, lease_until, session_starts_at, session_ends_at, session_used,
      week_starts_at, week_ends_at, week_used, month_starts_at, month_ends_at, month_used, lease_ms)
    select id, id, id, '', '', false, 0, 0, 0, 0, 'plan', 0, 0, at, at, at, at, 0, at, at, 0, at, at, 0, 0
    from (select gen_random_uuid() as id, clock_timestamp() as at) as trial;
    raise exception 'taken back' using errcode = 'SL000';
  exception when sqlstate 'SL000' then null;
  end $$;
