-- Ends requests. Their nodes settle them; other nodes do if a request's lease has lapsed; and then its own node may still
-- settle it late. Also makes an operator's adjustment.

-- Ends requests. A request without a hold was given up before its admission was answered. Its record, which charges
-- nothing, keeps its admission from being granted if that still arrives. A request never has both a hold and a record: if
-- its hold is gone, it may be settled already. The charge is at most what every limit leaves beside the holds of others. If
-- a limit was lowered meanwhile, nothing that was granted is taken back to make room for those holds. `charges` has the
-- charge of each command; null: it has a record already.
create function usage_settle(
  commands usage_settle_command[], limits bigint[], is_recovery boolean, clock timestamptz,
  inout book usage_book, out answers text
)
  language plpgsql volatile
  as $$
  declare
    step record;
    located record;
    used bigint[] := book.used; held bigint[] := book.held;
    running bigint[] := book.running; is_changed boolean[] := book.is_changed;
    bounds bigint[] := case when book.wholes is null then book.limits else usage_bounds(book) end;
    plans integer[]; owner integer; chain uuid[]; subjects integer[]; now integer[]; counters integer[];
    subject integer; counter integer; charge bigint;
    charges bigint[] := array_fill(null::bigint, array[cardinality(commands)]);
    after bigint[] := array_fill(null::bigint, array[cardinality(commands), 3]);
  begin
    for step in
      select c.ordinality as n, c.position, c.request_id, c.plan, c.nanos, c.owner, 4 * c.owner as extra, h.*
      from unnest(commands) with ordinality c
      left join lateral usage_hold_of(c.request_id, c.owner, book.subjects, book.starts_at) h on true
    loop
      if step.held is null then
        charges[step.n] := case when not exists (
          select from usage_record r where r.request_id = step.request_id) then 0 end;
        answers := concat(answers, ',[', step.position, coalesce(',"settled",' || charges[step.n], ',"already"'), ']');
        continue;
      end if;
      if (step.owner, step.chain) is distinct from (owner, chain) then
        owner := step.owner; chain := step.chain;
        subjects := usage_numbers(owner, chain, book.subjects);
        now := usage_counters(subjects);
      end if;
      counters := now;
      if plans[step.owner] is distinct from step.plan then
        bounds[step.extra - 3:step.extra - 1] := usage_plan_limits(limits, step.plan, step.extra, book.own, book.raised,
          book.starts_at, book.ends_at, book.wholes);
        plans[step.owner] := step.plan;
      end if;
      if not step.is_in_force then
        located := usage_locate(step.request_id, counters, used, held, book);
        counters := located.counters;
        used := located.used;
        held := located.held;
        book := located.book;
        bounds := usage_past_bounds(bounds, now, counters, limits, step.plan, step.extra, book);
      end if;
      charge := step.nanos;
      foreach counter in array counters[step.first:cardinality(counters) - step.spare] loop
        charge := least(charge, bounds[counter] - used[counter]
          - greatest(0, least(held[counter], bounds[counter] - used[counter]) - step.held));
      end loop;
      charge := greatest(0, charge);
      foreach counter in array counters[step.first:cardinality(counters) - step.spare] loop
        used[counter] := used[counter] + charge;
        held[counter] := held[counter] - step.held;
      end loop;
      foreach subject in array subjects loop
        running[subject] := running[subject] - 1;
        is_changed[subject] := true;
      end loop;
      charges[step.n] := charge;
      after[step.n:step.n] := array[[used[counters[1]], used[counters[2]], used[counters[3]]]];
      answers := concat(answers, ',[', step.position, ',"settled",', charge, ']');
    end loop;
    book.used := used;
    book.held := held;
    book.running := running; book.is_changed := is_changed;
    perform usage_write_records(commands, charges, after, is_recovery, clock, book.subjects);
  end $$;

-- Writes a record for each command that has a charge, and deletes the hold of its request, if there is one.
create function usage_write_records(
  commands usage_settle_command[], charges bigint[], after bigint[], is_recovery boolean, clock timestamptz, ids uuid[]
)
  returns void
  language plpgsql volatile
  as $$
  begin
    with gone as (
      delete from usage_hold where request_id = any (array(
        select c.request_id from unnest(commands) with ordinality c where charges[c.ordinality] is not null))
    )
    insert into usage_record
    select c.request_id, ids[c.owner], coalesce(h.key_id, c.key_id), coalesce(h.operation, c.operation),
      coalesce(h.model, c.model), coalesce(h.stream, c.stream), coalesce(h.price_input, c.price_input),
      coalesce(h.price_cached_input, c.price_cached_input), coalesce(h.price_cache_write, c.price_cache_write),
      coalesce(h.price_output, c.price_output), coalesce(h.price_search, c.price_search),
      coalesce(h.input_count, c.input_count), coalesce(h.source, 'plan'), coalesce(h.nanos, 0),
      charges[c.n], c.nanos - charges[c.n], coalesce(h.admitted_at, clock), clock,
      c.outcome, c.stopped_by, c.error_code, is_recovery,
      c.input_tokens, c.cached_input_tokens, c.cache_write_tokens, c.output_tokens, c.reasoning_tokens, c.usage_source,
      c.searches,
      h.session_starts_at, h.session_ends_at, h.session_limit, h.session_used, after[c.n][1],
      h.week_starts_at, h.week_ends_at, h.week_limit, h.week_used, after[c.n][2],
      h.month_starts_at, h.month_ends_at, h.month_limit, h.month_used, after[c.n][3],
      c.upstream, c.attempts, c.tried, c.first_part_ms, c.report_rejected, h.team_id, h.subjects, x.number
    from usage_xact() x (number)
    cross join (select c.*, c.ordinality as n from unnest(commands) with ordinality c) c
    left join lateral (
      select * from usage_hold h where h.request_id = c.request_id and h.organization_id = ids[c.owner] offset 0
    ) h on true
    where charges[c.n] is not null;
  end $$;

-- Settles requests whose lease has lapsed, the longest lapsed first, at most `most`; returns how many. Any node may do it.
--
-- To avoid reading dead rows again and again, it looks only at the requests that the last sweep has `seen` running, by
-- their keys, and at those whose ids are `since` or later (all ids, if it is null). It returns both for the next sweep, and
-- its clock. A node whose clock is slow by more than a minute makes ids before `since`, which only a sweep of all ids
-- finds.
--
-- If a lease ends later than its length allows from now on, it was given by a clock that has been set back meanwhile. Its end
-- is then set anew, one length from now by this clock, while its node has counted the length from an earlier instant.
create function usage_recover(
  most integer, charge_holds boolean, inout seen uuid[], inout since uuid,
  clock_min timestamptz default null, clock_max timestamptz default null,
  out settled integer, out clock timestamptz
)
  language plpgsql volatile
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
  as $$
  declare
    newest uuid;
    far uuid[];
    lapsed uuid[];
    now_locked timestamptz;
  begin
    clock := store_now();
    since := coalesce(since, '00000000-0000-0000-0000-000000000000');
    with live as materialized (
      select h.request_id, h.lease_until, h.lease_ms from unnest(seen) s (request_id) cross join lateral (
        select * from usage_hold h where h.request_id = s.request_id and h.request_id < since offset 0
      ) h
      union all
      select h.request_id, h.lease_until, h.lease_ms from usage_hold h where h.request_id >= since
    )
    select array(select request_id from live order by request_id limit 1001),
      (select request_id from live order by request_id desc limit 1),
      array(select request_id from live where lease_until > clock + (lease_ms + 1000) * interval '1 millisecond' limit most),
      array(select request_id from live where lease_until <= clock order by lease_until limit most)
    into seen, newest, far, lapsed;
    -- The next sweep begins a minute before the newest request: by the store's clock or that of the node which made the
    -- newest ID, whichever is slower. If nothing runs, it begins where this one did.
    since := case when newest is null then since else least(seen[1001],
      usage_record_id(least(clock, usage_record_time(newest)) - interval '1 minute')) end;
    -- Makes missing partitions before any lock is taken: requests of a node whose clock is far off may need them.
    perform usage_partition(request_id) from unnest(lapsed) request_id;
    if cardinality(far) > 0 then
      -- A checkpoint that waits for a hold's row while somebody else changes the row would take the hold for gone. So the
      -- organizations of these holds are locked here too, together with those of the lapsed holds: two sessions that took the
      -- locks in two steps could wait for each other.
      now_locked := usage_lock(array(
        select distinct h.organization_id from usage_hold h where h.request_id = any (far || lapsed)));
      update usage_hold h set lease_until = now_locked + h.lease_ms * interval '1 millisecond'
      where h.request_id = any (far) and h.lease_until > now_locked + (h.lease_ms + 1000) * interval '1 millisecond';
    end if;
    settled := 0;
    if cardinality(lapsed) > 0 then
      settled := usage_settle_lapsed(lapsed, charge_holds, clock_min, clock_max);
    end if;
  end $$;

-- Settles those of the `lapsed` requests whose lease has still lapsed now that their organizations are locked. Each is
-- charged by its last checkpoint; with `charge_holds`, a stream is instead charged all that was held. The limits and raises
-- (temporary increases of limits) in force apply. An answer that is not streamed was not delivered, and its checkpoints say
-- so. If the store's clock is not between `clock_min` and `clock_max`, somebody has set it: leases then only seem to have
-- lapsed, so nothing is settled.
create function usage_settle_lapsed(
  lapsed uuid[], charge_holds boolean, clock_min timestamptz, clock_max timestamptz
)
  returns integer
  language plpgsql volatile
  as $$
  declare
    organizations uuid[] := array(
      select distinct h.organization_id from usage_hold h where h.request_id = any (lapsed) order by 1);
    clock timestamptz := usage_lock(organizations);
    command usage_settle_command;
    commands usage_settle_command[] := '{}';
    limits bigint[] := '{}';
    book usage_book;
    ended record;
  begin
    for ended in
      select h.*, array_position(organizations, h.organization_id) as owner,
        case when p.name is null then array[h.session_limit, h.week_limit, h.month_limit]
          else array[p.session_nanos, p.week_nanos, p.month_nanos] end as limits_in_force
      from usage_hold h
      left join lateral (select o.plan from organization o where o.id = h.organization_id offset 0) o on true
      left join lateral (select * from plan p where p.name = o.plan offset 0) p on true
      where h.request_id = any (lapsed) and h.lease_until <= clock
        and coalesce(clock >= clock_min, true) and coalesce(clock <= clock_max, true)
    loop
      command := null;
      command."position" := cardinality(commands) + 1;
      command.request_id := ended.request_id;
      command.owner := ended.owner;
      command.plan := command."position";
      command.input_tokens := ended.input_tokens;
      command.cached_input_tokens := ended.cached_input_tokens;
      command.cache_write_tokens := ended.cache_write_tokens;
      command.output_tokens := ended.produced_tokens;
      command.reasoning_tokens := ended.reasoning_tokens;
      command.usage_source := ended.usage_source;
      command.nanos := case when ended.is_repeatable then 0 when charge_holds and ended.stream then ended.nanos
        else least(1000000000000000, usage_cost(ended.input_tokens, ended.price_input)
          + usage_cost(ended.cached_input_tokens, ended.price_cached_input)
          + usage_cost(ended.cache_write_tokens, ended.price_cache_write)
          + usage_cost(ended.produced_tokens, ended.price_output)) end;
      command.outcome := 'failed';
      command.error_code := 'internal_error';
      commands := commands || command;
      limits := limits || array[ended.limits_in_force];
    end loop;
    if commands = '{}' then
      return 0;
    end if;
    book := usage_load(organizations, clock);
    if true = any (book.has_subjects) then
      book := usage_load_subjects('{}', '{}', lapsed, book);
    end if;
    if book.is_raised then
      book := usage_raise(clock, book);
    end if;
    book := (usage_settle(commands, limits, true, clock, book)).book;
    perform usage_save(book);
    return cardinality(commands);
  end $$;

-- A node that was cut off from the store for longer than its lease may have forwarded more tokens than its last checkpoint
-- says. Another node then settled the request by that checkpoint. When the first node is back, it settles too, and an entry
-- of its own records what the request's record lacks (docs/design/metering.md, Rule 5: Settle exactly once). A record is
-- never changed.

-- The id of the entry for a late settlement: the request's own as UUID version 8. Request ids are of version 7, so no other
-- request has this id, and the entry falls into the same month.
create function usage_late_id(request uuid) returns uuid
  language sql immutable strict parallel safe
  as $$ select overlay(request::text placing '8' from 15 for 1)::uuid $$;

-- Records what the records of recovered requests lack, once for each request, in an entry of its own; returns what was
-- added now. Nothing is lacking in three cases:
-- - The request's record already charges as many nanos.
-- - The request was not charged by its checkpoint. A request with an idempotency key pays when it is repeated, and where whole
--   holds are charged, all of the hold was charged.
-- - The answer was not streamed, so it was not delivered.
--
-- The entry is settled like any request, by `usage_settle` under the limits and the raises in force. For that it gets a hold of
-- no nanos, which is deleted in this transaction. The hold is in the windows and the subjects of the request. It is also in
-- subjects whose counting began after the request ended, because these have the request as earlier use. It has every column
-- that a record and a hold have in common. The entry's operation keeps it out of counts of requests.
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
        and r.recovered and r.stream and r.charged + r.uncharged < command.nanos
        and r.charged + r.uncharged = usage_cost(r.input_tokens, r.price_input)
          + usage_cost(r.cached_input_tokens, r.price_cached_input) + usage_cost(r.cache_write_tokens, r.price_cache_write)
          + usage_cost(r.output_tokens, r.price_output)
        and not exists (select from usage_record l where l.request_id = usage_late_id(command.request_id));
      continue when not found;
      command.request_id := usage_late_id(command.request_id);
      insert into usage_hold
      select h.* from jsonb_populate_record(null::usage_hold, to_jsonb(recorded) || jsonb_build_object(
        'request_id', command.request_id, 'operation', 'adjustment', 'nanos', 0, 'output_tokens', 0, 'produced_tokens', 0,
        'subjects', recorded.subjects || usage_counted_since(recorded), 'session_used', recorded.session_used_before,
        'week_used', recorded.week_used_before, 'month_used', recorded.month_used_before, 'growth', 0, 'checkpoint', 0,
        'lease_until', clock, 'lease_ms', 0, 'is_repeatable', true)) h;
      command.outcome := recorded.outcome;
      command.nanos := command.nanos - recorded.charged - recorded.uncharged;
      command.input_tokens := command.input_tokens - recorded.input_tokens;
      command.cached_input_tokens := command.cached_input_tokens - recorded.cached_input_tokens;
      command.cache_write_tokens := command.cache_write_tokens - recorded.cache_write_tokens;
      command.output_tokens := command.output_tokens - recorded.output_tokens;
      command.reasoning_tokens := command.reasoning_tokens - recorded.reasoning_tokens;
      entries := entries || command.request_id;
      command.plan := cardinality(entries);
      late := late || command;
      limits := limits || array[coalesce(
        (select array[p.session_nanos, p.week_nanos, p.month_nanos] from organization o join plan p on p.name = o.plan
          where o.id = recorded.organization_id),
        array[recorded.session_limit, recorded.week_limit, recorded.month_limit])];
    end loop;
    if late is null then
      return;
    end if;
    book := usage_load(organizations, clock);
    if true = any (book.has_subjects) then
      book := usage_load_subjects('{}', '{}', entries, book);
    end if;
    for n in 1..cardinality(book.subjects) loop
      book.running[n] := book.running[n] + (
        select count(*) from usage_hold h
        where h.request_id = any (entries) and book.subjects[n] = any (h.organization_id || h.subjects));
    end loop;
    if book.is_raised then
      book := usage_raise(clock, book);
    end if;
    book := (usage_settle(late, limits, false, clock, book)).book;
    perform usage_save(book);
    return query
      select l."position", r.request_id, r.charged, r.uncharged
      from unnest(late) l
      cross join lateral (select * from usage_record r where r.request_id = l.request_id offset 0) r;
  end $$;

-- Writes an operator's adjustment: a record without a request. It adds to one current window of the organization, or takes
-- from it, down to nothing. The window's boundaries stay. Returns what was added. Null: there is no such organization, or
-- no session is open. Each `entry_id` is applied only once.
create function usage_adjust(entry_id uuid, organization uuid, window_kind usage_window_kind, nanos bigint) returns bigint
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
    perform usage_partition(entry_id);
    clock := usage_lock(array[organization]);
    select r.charged into added from usage_record r where r.request_id = entry_id;
    if found then
      return added;
    end if;
    book := usage_load(array[organization], clock);
    starts := book.starts_at[kind];
    ends := book.ends_at[kind];
    if ends is null or (window_kind = 'session' and not book.is_open[1]) then
      return null;
    end if;
    -- Caps the total: beyond 2^53 - 1 it could not be read exactly.
    added := greatest(least(nanos, 9007199254740991 - book.used[kind]), -book.used[kind]);
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
    book.used[kind] := book.used[kind] + added;
    book.is_changed[1] := true;
    perform usage_save(book);
    return added;
  end $$;
