-- A node that was cut off from the store for longer than its lease may have forwarded more than the last checkpoint says
-- at which another node settled its request. When it is back, it settles too, and what the record lacks is booked by an
-- entry of its own (docs/design/metering.md, Rule 5: Settle exactly once). A record is never changed.

-- The id of that entry: the request's own as UUID version 8. Request ids are of version 7, so it is nobody else's, and it
-- lies in the same month.
create function usage_late_id(request uuid) returns uuid
  language sql immutable strict parallel safe
  as $$ select overlay(request::text placing '8' from 15 for 1)::uuid $$;

-- Books what recovered requests lack, each once; answers those that were booked now. Nothing is lacking where the record has
-- as many units, or was not charged by its checkpoint: a request with an idempotency key pays when it is repeated, and
-- where whole holds are charged, the hold was charged. What nobody streamed was not delivered.
--
-- The entry is settled like any request, by `usage_settle` under the limits in force: its hold, of no units, stands in the
-- windows and the subjects of the request, and is gone with this transaction. It carries whatever column a record and a
-- hold have in common. Its operation keeps it out of counts of requests.
create function usage_settle_late(organizations uuid[], commands usage_settle_command[])
  returns table ("position" integer, entry_id uuid, charged bigint, uncharged bigint)
  language plpgsql volatile
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
  as $$
  declare
    clock timestamptz := usage_lock(organizations);
    command usage_settle_command;
    recorded usage_record;
    late usage_settle_command[];
    limits bigint[] := '{}';
    entries uuid[] := '{}';
    book usage_book;
  begin
    foreach command in array commands loop
      select r.* into recorded from usage_record r
      where r.request_id = command.request_id and r.organization_id = organizations[command.owner]
        and r.recovered and r.stream and r.charged + r.uncharged < command.units
        and r.charged + r.uncharged = r.input_tokens * r.price_input + r.cached_input_tokens * r.price_cached_input
          + r.cache_write_tokens * r.price_cache_write + r.output_tokens * r.price_output
        and not exists (select from usage_record l where l.request_id = usage_late_id(command.request_id));
      continue when not found;
      command.request_id := usage_late_id(command.request_id);
      insert into usage_hold
      select h.* from jsonb_populate_record(null::usage_hold, to_jsonb(recorded) || jsonb_build_object(
        'request_id', command.request_id, 'operation', 'adjustment', 'units', 0, 'output_tokens', 0, 'produced_tokens', 0,
        'session_used', recorded.session_used_before, 'week_used', recorded.week_used_before,
        'month_used', recorded.month_used_before, 'growth', 0, 'checkpoint', 0, 'lease_until', clock, 'lease_ms', 0)) h;
      command.outcome := recorded.outcome;
      command.units := command.units - recorded.charged - recorded.uncharged;
      command.input_tokens := command.input_tokens - recorded.input_tokens;
      command.cached_input_tokens := command.cached_input_tokens - recorded.cached_input_tokens;
      command.cache_write_tokens := command.cache_write_tokens - recorded.cache_write_tokens;
      command.output_tokens := command.output_tokens - recorded.output_tokens;
      command.reasoning_tokens := command.reasoning_tokens - recorded.reasoning_tokens;
      entries := entries || command.request_id;
      command.plan := cardinality(entries);
      late := late || command;
      limits := limits || array[coalesce(
        (select array[p.session_units, p.week_units, p.month_units] from organization o join plan p on p.name = o.plan
          where o.id = recorded.organization_id),
        array[recorded.session_limit, recorded.week_limit, recorded.month_limit])];
    end loop;
    if late is null then
      return;
    end if;
    book := usage_load(organizations, clock);
    if true = any (book.has_subjects) then
      book := usage_load_subjects('{}', entries, book);
    end if;
    for n in 1..cardinality(book.subjects) loop
      book.running[n] := book.running[n] + (
        select count(*) from usage_hold h
        where h.request_id = any (entries) and book.subjects[n] = any (h.organization_id || h.subjects));
    end loop;
    book := (usage_settle(late, limits, false, clock, book)).book;
    perform usage_save(book);
    return query
      select l."position", r.request_id, r.charged, r.uncharged
      from unnest(late) l
      cross join lateral (select * from usage_record r where r.request_id = l.request_id offset 0) r;
  end $$;
