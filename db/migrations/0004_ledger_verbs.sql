-- The verbs of the ledger: what commands and answers mean is said in src/store/ledger.ts. Each verb is one function that
-- carries out all of a batch's commands of its kind, in their order, each seeing those before it; `usage_batch` calls
-- them, and reads and writes the totals once. What a verb works on are arrays: owners ascending by id, and windows, of
-- which the n-th owner's stand from 4n - 3 to 4n. `limits` has a row for each set of limits that commands name by its
-- number, in the order of window kinds; null does not limit, and least() passes nulls by. `over` are requests that have a
-- record. Commands and holds have variables of their own type: fields of a record are looked up by name in every row.

-- The commands of a batch. `position` says where the answer belongs.

create type usage_admit_command as (
  position integer, request_id uuid, organization_id uuid, key_id uuid, operation text, model text, stream boolean,
  price_input bigint, price_cached_input bigint, price_cache_write bigint, price_output bigint,
  limits integer, concurrent_limit bigint,
  input_units bigint, output_tokens bigint, output_tokens_min bigint, lease_ms bigint
);
create type usage_grow_command as (
  position integer, request_id uuid, organization_id uuid, limits integer, units_total bigint, units_total_min bigint
);
create type usage_checkpoint_command as (
  position integer, request_id uuid, organization_id uuid, number integer,
  input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
  reasoning_tokens bigint, usage_source text, lease_ms bigint
);
create type usage_settle_command as (
  position integer, request_id uuid, organization_id uuid, key_id uuid, operation text, model text, stream boolean,
  price_input bigint, price_cached_input bigint, price_cache_write bigint, price_output bigint,
  limits integer,
  input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
  reasoning_tokens bigint, usage_source text,
  units bigint, outcome text, stopped_by text, error_code text,
  upstream text, attempts integer, first_part_ms bigint, report_rejected jsonb
);

-- Windows are as they were just before the command, four of them, and of an admission alone.
create type usage_answer as (
  position integer, answer text, at timestamptz, units bigint, output_tokens bigint, source usage_billing,
  charged bigint, uncharged bigint, windows usage_total[], extra_enabled boolean, extra_cap bigint
);

-- Ends requests. One without a hold was given up before its admission was answered: its record, which charges nothing,
-- keeps an admission that comes late from running.
create function usage_settle(
  commands usage_settle_command[], limits bigint[], over uuid[], is_recovery boolean, clock timestamptz,
  inout owners usage_owner[], inout windows usage_total[], out answers usage_answer[]
)
  language plpgsql volatile
  as $$
  declare
    step record;
    command usage_settle_command;
    hold usage_hold;
    located usage_hold;
    location record;
    owner integer := 1;
    owned usage_owner := owners[1];
    places integer[];
    first integer;
    last integer;
    total usage_total;
    unused bigint;
    room bigint;
    charge bigint;
    records usage_record[] := '{}';
    ended uuid[] := '{}';
  begin
    for step in
      select c as command, h.hold
      from unnest(commands) c
      left join lateral (
        select h as hold from usage_hold h
        where h.request_id = c.request_id and h.organization_id = c.organization_id offset 0
      ) h on true
      order by c.organization_id, c.position
    loop
      command := step.command;
      hold := step.hold;
      if command.request_id = any (over) then
        answers := answers
          || row(command.position, 'already', clock, null, null, null, null, null, null, null, null)::usage_answer;
        continue;
      end if;
      if hold.request_id is null then
        answers := answers
          || row(command.position, 'settled', clock, null, null, null, 0, command.units, null, null, null)::usage_answer;
        records := records || row(
          command.request_id, command.organization_id, command.key_id, command.operation, command.model, command.stream,
          command.price_input, command.price_cached_input, command.price_cache_write, command.price_output,
          'plan', 0, 0, command.units, clock, clock, command.outcome, command.stopped_by, command.error_code, is_recovery,
          command.input_tokens, command.cached_input_tokens, command.cache_write_tokens, command.output_tokens,
          command.reasoning_tokens, command.usage_source,
          null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
          command.upstream, command.attempts, command.first_part_ms, command.report_rejected
        )::usage_record;
        continue;
      end if;

      if hold.organization_id is distinct from located.organization_id
        or hold.session_starts_at <> located.session_starts_at or hold.week_starts_at <> located.week_starts_at
        or hold.month_starts_at <> located.month_starts_at
      then
        owners[owner] := owned;
        while owned.organization_id <> hold.organization_id loop
          owner := owner + 1;
          owned := owners[owner];
        end loop;
        located := hold;
        location := usage_locate(hold, 4 * owner - 3, windows);
        windows := location.windows;
        places := location.places;
      end if;
      if hold.source = 'plan' then
        first := 1;
        last := 3;
      else
        first := 4;
        last := 4;
      end if;

      -- What every limit leaves, without what others hold; but what was granted is not taken back for their holds where
      -- a limit was lowered meanwhile.
      room := command.units;
      for kind in first..last loop
        total := windows[places[kind]];
        unused := case kind when 4 then owned.extra_cap else limits[command.limits][kind] end - total.used;
        room := least(room, unused - greatest(0, least(total.held, unused) - hold.units));
      end loop;
      charge := greatest(0, room);
      for kind in first..last loop
        total := windows[places[kind]];
        total.used := total.used + charge;
        total.held := total.held - hold.units;
        total.is_changed := true;
        windows[places[kind]] := total;
      end loop;
      owned.running := owned.running - 1;
      owned.is_changed := true;

      answers := answers || row(command.position, 'settled', clock, null, null, null,
        charge, command.units - charge, null, null, null)::usage_answer;
      ended := ended || hold.request_id;
      records := records || row(
        hold.request_id, hold.organization_id, hold.key_id, hold.operation, hold.model, hold.stream,
        hold.price_input, hold.price_cached_input, hold.price_cache_write, hold.price_output,
        hold.source, hold.units, charge, command.units - charge, hold.admitted_at, clock,
        command.outcome, command.stopped_by, command.error_code, is_recovery,
        command.input_tokens, command.cached_input_tokens, command.cache_write_tokens, command.output_tokens,
        command.reasoning_tokens, command.usage_source,
        hold.session_starts_at, hold.session_ends_at, hold.session_limit, hold.session_used, windows[places[1]].used,
        hold.week_starts_at, hold.week_ends_at, hold.week_limit, hold.week_used, windows[places[2]].used,
        hold.month_starts_at, hold.month_ends_at, hold.month_limit, hold.month_used, windows[places[3]].used,
        command.upstream, command.attempts, command.first_part_ms, command.report_rejected
      )::usage_record;
    end loop;
    owners[owner] := owned;

    with gone as (delete from usage_hold where request_id = any (ended))
    insert into usage_record select * from unnest(records);
  end $$;

-- Raises holds to a new total, or to as much of it as there is room for.
create function usage_grow(
  commands usage_grow_command[], limits bigint[], clock timestamptz,
  inout owners usage_owner[], inout windows usage_total[], out answers usage_answer[]
)
  language plpgsql volatile
  as $$
  declare
    step record;
    command usage_grow_command;
    hold usage_hold;
    located usage_hold;
    location record;
    owner integer := 1;
    owned usage_owner := owners[1];
    places integer[];
    first integer;
    last integer;
    total usage_total;
    room bigint;
    granted bigint;
    grown uuid[] := '{}';
    grown_units bigint[] := '{}';
  begin
    for step in
      select c as command, h.hold
      from unnest(commands) c
      left join lateral (
        select h as hold from usage_hold h
        where h.request_id = c.request_id and h.organization_id = c.organization_id offset 0
      ) h on true
      order by c.organization_id, c.position
    loop
      command := step.command;
      hold := step.hold;
      if hold.request_id is null then
        answers := answers
          || row(command.position, 'gone', clock, null, null, null, null, null, null, null, null)::usage_answer;
        continue;
      end if;
      if hold.organization_id is distinct from located.organization_id
        or hold.session_starts_at <> located.session_starts_at or hold.week_starts_at <> located.week_starts_at
        or hold.month_starts_at <> located.month_starts_at
      then
        while owned.organization_id <> hold.organization_id loop
          owner := owner + 1;
          owned := owners[owner];
        end loop;
        located := hold;
        location := usage_locate(hold, 4 * owner - 3, windows);
        windows := location.windows;
        places := location.places;
      end if;
      if hold.source = 'plan' then
        first := 1;
        last := 3;
        room := null;
      else
        first := 4;
        last := 4;
        room := case when not owned.extra_enabled then 0 end;
      end if;

      for kind in first..last loop
        total := windows[places[kind]];
        room := least(room,
          case kind when 4 then owned.extra_cap else limits[command.limits][kind] end - total.used - total.held);
      end loop;
      granted := greatest(hold.units, least(command.units_total, hold.units + room));
      if granted < command.units_total_min then
        answers := answers
          || row(command.position, 'full', clock, null, null, null, null, null, null, null, null)::usage_answer;
        continue;
      end if;
      if granted > hold.units then
        for kind in first..last loop
          total := windows[places[kind]];
          total.held := total.held + granted - hold.units;
          total.is_changed := true;
          windows[places[kind]] := total;
        end loop;
        grown := grown || hold.request_id;
        grown_units := grown_units || granted;
      end if;
      answers := answers
        || row(command.position, 'granted', clock, granted, null, null, null, null, null, null, null)::usage_answer;
    end loop;

    update usage_hold set units = grown_units[array_position(grown, request_id)] where request_id = any (grown);
  end $$;

-- The answer to an admission that was granted before. Its own hold is no part of what it saw.
create function usage_granted_before(
  "position" integer, clock timestamptz, hold usage_hold, first integer, windows usage_total[], owned usage_owner
) returns usage_answer
  language plpgsql stable
  as $$
  declare
    location record := usage_locate(hold, first, windows);
    seen usage_total[] := array(select location.windows[place] from unnest(location.places) place);
  begin
    seen[1].used := hold.session_used;
    seen[2].used := hold.week_used;
    seen[3].used := hold.month_used;
    if hold.source = 'plan' then
      for kind in 1..3 loop
        seen[kind].held := seen[kind].held - hold.units;
      end loop;
    end if;
    return row("position", 'granted', clock, hold.units, hold.output_tokens, hold.source, null, null, seen,
      owned.extra_enabled, owned.extra_cap)::usage_answer;
  end $$;

-- Holds what a request may use: in the plan's windows or, where they are full, as extra usage.
create function usage_admit(
  commands usage_admit_command[], limits bigint[], over uuid[], clock timestamptz,
  inout owners usage_owner[], inout windows usage_total[], out answers usage_answer[]
)
  language plpgsql volatile
  as $$
  declare
    step record;
    command usage_admit_command;
    hold usage_hold;
    owner integer := 1;
    owned usage_owner := owners[1];
    base integer := 0;
    total usage_total;
    units_whole bigint;
    units_least bigint;
    room bigint;
    room_extra bigint;
    billed usage_billing;
    units bigint;
    tokens bigint;
    holds usage_hold[] := '{}';
  begin
    for step in
      select c as command, h.hold
      from unnest(commands) c
      left join lateral (
        select h as hold from usage_hold h
        where h.request_id = c.request_id and h.organization_id = c.organization_id offset 0
      ) h on true
      order by c.organization_id, c.position
    loop
      command := step.command;
      hold := step.hold;
      while owned.organization_id <> command.organization_id loop
        owners[owner] := owned;
        owner := owner + 1;
        owned := owners[owner];
        base := base + 4;
      end loop;
      if command.request_id = any (over) or owned.extra_enabled is null then
        answers := answers || row(command.position,
          case when command.request_id = any (over) then 'over' else 'unknown' end, clock,
          null, null, null, null, null, null, null, null)::usage_answer;
        continue;
      end if;
      if hold.request_id is not null then
        -- Granted before; that answer was lost.
        answers := answers || usage_granted_before(command.position, clock, hold, base + 1, windows, owned);
        continue;
      end if;

      units_whole := command.input_units + command.output_tokens * command.price_output;
      units_least := command.input_units + command.output_tokens_min * command.price_output;
      -- A room of null is without bounds.
      room := null;
      for kind in 1..3 loop
        total := windows[base + kind];
        room := least(room, limits[command.limits][kind] - total.used - total.held);
      end loop;
      total := windows[base + 4];
      room_extra := owned.extra_cap - total.used - total.held;
      billed := case
        when coalesce(units_whole <= room, true) then 'plan'::usage_billing
        when owned.extra_enabled and coalesce(units_whole <= room_extra, true) then 'extra'
        when units_least <= room then 'plan'
        when owned.extra_enabled and units_least <= room_extra then 'extra' end;

      if billed is null or owned.running >= command.concurrent_limit then
        answers := answers || row(command.position, case
            when billed is not null then 'concurrency'
            -- Full of settled use, or only of what others hold for the moment, the extra usage included?
            when coalesce(units_least <= least(
              limits[command.limits][1] - windows[base + 1].used,
              limits[command.limits][2] - windows[base + 2].used,
              limits[command.limits][3] - windows[base + 3].used), true) then 'reserved'
            when owned.extra_enabled and units_least <= owned.extra_cap - total.used then 'reserved'
            else 'exhausted' end,
          clock, null, null, null, null, null,
          array[windows[base + 1], windows[base + 2], windows[base + 3], windows[base + 4]],
          owned.extra_enabled, owned.extra_cap)::usage_answer;
        continue;
      end if;
      room := case billed when 'plan' then room else room_extra end;
      tokens := case when coalesce(units_whole <= room, true) then command.output_tokens
        else (room - command.input_units) / command.price_output end;
      units := command.input_units + tokens * command.price_output;
      answers := answers || row(command.position, 'granted', clock, units, tokens, billed, null, null,
        array[windows[base + 1], windows[base + 2], windows[base + 3], windows[base + 4]],
        owned.extra_enabled, owned.extra_cap)::usage_answer;
      holds := holds || row(
        command.request_id, command.organization_id, command.key_id, command.operation, command.model, command.stream,
        command.price_input, command.price_cached_input, command.price_cache_write, command.price_output,
        billed, units, tokens, clock, clock + command.lease_ms * interval '1 millisecond',
        windows[base + 1].starts_at, windows[base + 1].ends_at, limits[command.limits][1], windows[base + 1].used,
        windows[base + 2].starts_at, windows[base + 2].ends_at, limits[command.limits][2], windows[base + 2].used,
        windows[base + 3].starts_at, windows[base + 3].ends_at, limits[command.limits][3], windows[base + 3].used,
        0, 0, 0, 0, 0, 0, 'counted'
      )::usage_hold;
      if billed = 'plan' then
        owned.session_opened_at := windows[base + 1].starts_at;
      end if;
      owned.running := owned.running + 1;
      owned.is_changed := true;
      for kind in case billed when 'plan' then 1 else 4 end..case billed when 'plan' then 3 else 4 end loop
        total := windows[base + kind];
        total.held := total.held + units;
        total.is_changed := true;
        windows[base + kind] := total;
      end loop;
    end loop;
    owners[owner] := owned;

    insert into usage_hold select * from unnest(holds);
  end $$;

-- Extends leases and says how far requests are. Counts only rise, and one that was overtaken on its way changes none.
create function usage_checkpoint(commands usage_checkpoint_command[], clock timestamptz) returns usage_answer[]
  language plpgsql volatile
  as $$
  declare
    answers usage_answer[];
  begin
    with extended as (
      update usage_hold h set
        lease_until = greatest(h.lease_until, clock + c.lease_ms * interval '1 millisecond'),
        checkpoint = greatest(h.checkpoint, c.number),
        input_tokens = case when c.number > h.checkpoint then c.input_tokens else h.input_tokens end,
        cached_input_tokens = case when c.number > h.checkpoint then c.cached_input_tokens else h.cached_input_tokens end,
        cache_write_tokens = case when c.number > h.checkpoint then c.cache_write_tokens else h.cache_write_tokens end,
        produced_tokens = greatest(h.produced_tokens, c.output_tokens),
        reasoning_tokens = greatest(h.reasoning_tokens, c.reasoning_tokens),
        usage_source = case when c.number > h.checkpoint then c.usage_source else h.usage_source end
      from (
        -- The row's place, found by its key: joined by the key itself, the planner would be free to read all of them.
        select c.*, o.place from unnest(commands) c
        cross join lateral (
          select o.ctid as place from usage_hold o
          where o.request_id = c.request_id and o.organization_id = c.organization_id offset 0
        ) o
      ) c
      where h.ctid = c.place
      returning c.position
    )
    select array_agg(row(c.position, case when c.position in (select e.position from extended e) then 'extended'
      else 'gone' end, clock, null, null, null, null, null, null, null, null)::usage_answer)
    into answers from unnest(commands) c;
    return answers;
  end $$;

-- One batch: settles, then grows, then admits; checkpoints last. A request id may stand in a batch once. A refusal is an
-- answer and fails nothing. The settings keep it on the indexes: planned while its tables are empty, it would read them
-- whole ever after.
create function usage_batch(
  admits usage_admit_command[], grows usage_grow_command[], checkpoints usage_checkpoint_command[],
  settles usage_settle_command[], limits bigint[]
)
  returns usage_answer[]
  language plpgsql volatile
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
  as $$
  declare
    clock timestamptz;
    organizations uuid[] := array(
      select c.organization_id from unnest(admits) c union select c.organization_id from unnest(grows) c
      union select c.organization_id from unnest(checkpoints) c union select c.organization_id from unnest(settles) c
      order by 1);
    over uuid[];
    book record;
    answers usage_answer[] := '{}';
  begin
    perform usage_lock(organizations);
    -- Only now: a clock read before the wait could stand before what others did meanwhile.
    clock := store_now();
    if cardinality(admits) + cardinality(grows) + cardinality(settles) > 0 then
      over := array(
        select r.request_id from usage_record r where r.request_id = any (array(
          select c.request_id from unnest(settles) c union all select c.request_id from unnest(admits) c)));
      book := usage_load(organizations, clock);
      if cardinality(settles) > 0 then
        book := usage_settle(settles, limits, over, false, clock, book.owners, book.windows);
        answers := answers || book.answers;
      end if;
      if cardinality(grows) > 0 then
        book := usage_grow(grows, limits, clock, book.owners, book.windows);
        answers := answers || book.answers;
      end if;
      if cardinality(admits) > 0 then
        book := usage_admit(admits, limits, over, clock, book.owners, book.windows);
        answers := answers || book.answers;
      end if;
      perform usage_save(book.owners, book.windows);
    end if;
    if cardinality(checkpoints) > 0 then
      answers := answers || usage_checkpoint(checkpoints, clock);
    end if;
    return answers;
  end $$;

-- Requests whose lease has lapsed, the longest gone first. It reads the small table whole.
create function usage_lapsed(most integer) returns setof usage_hold
  language sql volatile
  set enable_seqscan = on
  as $$ select * from usage_hold where lease_until <= store_now() order by lease_until limit most $$;

-- Settles them at their last checkpoint or, with `charge_holds`, as if all that was held had been used; answers how
-- many. Any node may do it; the lease is looked at again under the lock.
create function usage_recover(most integer, charge_holds boolean) returns integer
  language plpgsql volatile
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
  as $$
  declare
    clock timestamptz;
    lapsed uuid[];
    limits bigint[];
    organizations uuid[];
    commands usage_settle_command[];
    book record;
  begin
    select array_agg(h.request_id order by h.lease_until),
      array_agg(array[h.session_limit, h.week_limit, h.month_limit] order by h.lease_until),
      array_agg(distinct h.organization_id order by h.organization_id)
    into lapsed, limits, organizations from usage_lapsed(most) h;
    if lapsed is null then
      return 0;
    end if;
    perform usage_lock(organizations);
    clock := store_now();
    commands := array(
      select row(
        array_position(lapsed, h.request_id), h.request_id, h.organization_id,
        null, null, null, null, null, null, null, null, array_position(lapsed, h.request_id),
        h.input_tokens, h.cached_input_tokens, h.cache_write_tokens, h.produced_tokens, h.reasoning_tokens,
        h.usage_source,
        case when charge_holds then h.units else least(1000000000000000,
          h.input_tokens * h.price_input + h.cached_input_tokens * h.price_cached_input
          + h.cache_write_tokens * h.price_cache_write + h.produced_tokens * h.price_output) end,
        'failed', null, 'internal_error', null, null, null, null
      )::usage_settle_command
      from usage_hold h where h.request_id = any (lapsed) and h.lease_until <= clock);
    book := usage_load(organizations, clock);
    book := usage_settle(commands, limits, '{}', true, clock, book.owners, book.windows);
    perform usage_save(book.owners, book.windows);
    return cardinality(commands);
  end $$;
