-- Admissions, and holds that grow.

-- The other subjects that a request of a key counts in, where they are limited: the key, its person and its team.
create function usage_chain(key uuid, keys uuid[], members uuid[], teams uuid[]) returns uuid[]
  language sql immutable
  as $$
    select case when keys is not null then
      array[key, members[array_position(keys, key)], teams[array_position(keys, key)]] end
  $$;

-- The subjects of a chain that have limits; null where none has.
create function usage_limited(chain uuid[], ids uuid[]) returns uuid[]
  language sql immutable
  as $$
    select nullif(array_remove(array[case when chain[1] = any (ids) then chain[1] end,
      case when chain[2] = any (ids) then chain[2] end, case when chain[3] = any (ids) then chain[3] end], null), '{}')
  $$;

-- The answer to an admission that was granted before. Its own hold is no part of what it saw.
create function usage_granted_before(request uuid, owner integer, held bigint[], book usage_book) returns text
  language plpgsql stable
  as $$
  declare
    hold usage_hold := (select h from usage_hold h where h.request_id = request);
    at record := usage_locate(request, usage_counters(owner, null, null), book.used, held, book);
    own bigint := case hold.source when 'plan' then hold.units else 0 end;
  begin
    return concat('"granted",', usage_organization_answer(
        array[hold.session_starts_at, hold.week_starts_at, hold.month_starts_at],
        array[hold.session_ends_at, hold.week_ends_at, hold.month_ends_at],
        array[hold.session_used, hold.week_used, hold.month_used, at.used[at.counters[4]]],
        book.extra_enabled[owner], book.limits[4 * owner], book.raised[4 * owner - 3:4 * owner]),
      ',[', at.held[at.counters[1]] - own, ',', at.held[at.counters[2]] - own, ',', at.held[at.counters[3]] - own, ',',
      at.held[at.counters[4]], '],null,', hold.units, ',', hold.output_tokens, ',"', hold.source, '"', ',"' || hold.team_id || '"');
  end $$;

-- Why nothing is granted. Where a source has room, too many requests run; else windows are full of settled use, or only of
-- what others hold for the moment, extra usage included.
create function usage_refusal(
  source usage_billing, units_least bigint, counters integer[], is_extra boolean, plan_limits bigint[], limits bigint[], used bigint[]
)
  returns text
  language plpgsql immutable
  as $$
  declare
    unused bigint;
    unused_extra bigint;
  begin
    if source is not null then
      return 'concurrency';
    end if;
    for i in 1..cardinality(counters) - 1 loop
      unused := least(unused, coalesce(plan_limits[1][i], limits[counters[i]]) - used[counters[i]]);
    end loop;
    for i in 4..cardinality(counters) loop
      unused_extra := least(unused_extra, limits[counters[i]] - used[counters[i]]);
    end loop;
    return case when coalesce(units_least <= unused, true) or (is_extra and units_least <= unused_extra) then 'reserved'
      else 'exhausted' end;
  end $$;

-- What an admission saw of a subject beside its organization, by the place of the first of its counters.
create function usage_subject_answer(
  place integer, first integer, limits bigint[], concurrent bigint, used bigint[], held bigint[], running bigint
)
  returns text
  language sql stable
  as $$
    select concat(',[', place, ',', limits[first], ',', limits[first + 1], ',', limits[first + 2], ',',
      coalesce(concurrent::text, 'null'), ',', used[first], ',', used[first + 1], ',', used[first + 2], ',',
      held[first], ',', held[first + 1], ',', held[first + 2], ',', running, ']')
  $$;

-- The source that an admission is billed to: the one that has room for all of it, or else for the least that is of use.
-- A null room has no bounds.
create function usage_source(units bigint, units_least bigint, room bigint, is_extra boolean, room_extra bigint)
  returns usage_billing
  language sql immutable
  as $$
    select case
      when coalesce(units <= room, true) then 'plan'::usage_billing
      when is_extra and coalesce(units <= room_extra, true) then 'extra'
      when units_least <= room then 'plan'
      when is_extra and units_least <= room_extra then 'extra' end
  $$;

-- The ids of admissions that have a record. Their span is there for the planner, who would look into every month for the ids
-- alone.
create function usage_over(commands usage_admit_command[]) returns uuid[]
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

-- Admissions with what they count in. `known`: the answer to one of a request that is over, or of no organization; `held`: what
-- one that was granted before holds. The chain stands once, behind `offset 0`: what is asked of it several times would else
-- be worked out each time.
create function usage_admissions(
  commands usage_admit_command[], over uuid[], ids uuid[], extra_enabled boolean[], keys uuid[], members uuid[], teams uuid[]
)
  returns table (
    n bigint, "position" integer, request_id uuid, owner integer, plan integer, concurrent_limit bigint, price_output bigint,
    input_units bigint, output_tokens bigint, units bigint, units_least bigint, is_extra boolean, chain uuid[],
    counters integer[], held bigint, known text
  )
  language sql stable
  as $$
    select c.ordinality, c.position, c.request_id, c.owner, c.plan, c.concurrent_limit, c.price_output,
      c.input_units, c.output_tokens,
      c.input_units + c.output_tokens * c.price_output, c.input_units + c.output_tokens_min * c.price_output,
      extra_enabled[c.owner], o.chain, usage_counters(c.owner, o.chain, ids), h.units,
      case when c.request_id = any (over) then '"over"' when extra_enabled[c.owner] is null then '"unknown"' end
    from unnest(commands) with ordinality c
    cross join lateral (select usage_chain(c.key_id, keys, members, teams) as chain offset 0) o
    left join lateral (
      select h.units from usage_hold h where h.request_id = c.request_id and h.organization_id = ids[c.owner] offset 0
    ) h on true
  $$;

-- The output tokens that a source has room for, of those that were asked for.
create function usage_tokens(units bigint, room bigint, input_units bigint, price_output bigint, tokens bigint) returns bigint
  language sql immutable
  as $$ select case when coalesce(units <= room, true) then tokens else (room - input_units) / price_output end $$;

-- Holds what a request may use: in the plan's windows or, where they are full, as extra usage. A room of null is without
-- bounds. `sources`, `units` and `tokens` have an element for each command; without units nothing is held.
create function usage_admit(
  commands usage_admit_command[], over uuid[], limits bigint[], clock timestamptz, inout book usage_book, out answers text
)
  language plpgsql volatile
  as $$
  declare
    step record;
    held bigint[] := book.held;
    running bigint[] := book.running;
    is_changed boolean[] := book.is_changed;
    counters integer[];
    count integer;
    room bigint;
    room_extra bigint;
    is_crowded boolean;
    seen text;
    rows text;
    subject integer;
    sources usage_billing[];
    units bigint[];
    tokens bigint[];
  begin
    for step in
      select * from usage_admissions(commands, over, book.subjects, book.extra_enabled, book.keys, book.members, book.teams)
    loop
      if step.known is not null or step.held is not null then
        answers := concat(answers, ',[', step.position, ',',
          coalesce(step.known, usage_granted_before(step.request_id, step.owner, held, book)), ']');
        continue;
      end if;
      counters := step.counters;
      count := cardinality(counters);
      room := null;
      for i in 1..count - 1 loop
        room := least(room,
          coalesce(limits[step.plan][i], book.limits[counters[i]]) - book.used[counters[i]] - held[counters[i]]);
      end loop;
      room_extra := case when step.is_extra then book.limits[counters[count]] - book.used[counters[count]] - held[counters[count]] end;
      for i in 4..count - 1 loop
        room_extra := least(room_extra, book.limits[counters[i]] - book.used[counters[i]] - held[counters[i]]);
      end loop;
      is_crowded := running[step.owner] >= step.concurrent_limit;
      rows := null;
      for i in 4..count - 1 by 3 loop
        subject := (counters[i] + 3) / 4;
        is_crowded := is_crowded or running[subject] >= book.concurrent[subject];
        rows := concat(rows, usage_subject_answer(array_position(step.chain, book.subjects[subject]) - 1, counters[i],
          book.limits, book.concurrent[subject], book.used, held, running[subject]));
      end loop;
      seen := concat(step.owner, ',[', held[counters[1]], ',', held[counters[2]], ',', held[counters[3]], ',',
        held[counters[count]], '],', coalesce('[' || substr(rows, 2) || ']', 'null'));
      sources[step.n] := usage_source(step.units, step.units_least, room, step.is_extra, room_extra);
      if sources[step.n] is null or is_crowded then
        answers := concat(answers, ',[', step.position, ',"', usage_refusal(sources[step.n], step.units_least, counters,
          step.is_extra, limits[step.plan:step.plan], book.limits, book.used), '",', seen, ']');
        continue;
      end if;
      tokens[step.n] := usage_tokens(step.units, case sources[step.n] when 'plan' then room else room_extra end,
        step.input_units, step.price_output, step.output_tokens);
      units[step.n] := step.input_units + tokens[step.n] * step.price_output;
      answers := concat(answers, ',[', step.position, ',"granted",', seen, ',', units[step.n], ',', tokens[step.n],
        ',"', sources[step.n], '"', ',"' || step.chain[3] || '"', ']');
      for i in case sources[step.n] when 'plan' then 1 else 4 end..count - (sources[step.n] = 'plan')::integer loop
        held[counters[i]] := held[counters[i]] + units[step.n];
      end loop;
      for i in 1..count - 1 by 3 loop
        running[(counters[i] + 3) / 4] := running[(counters[i] + 3) / 4] + 1;
        is_changed[(counters[i] + 3) / 4] := true;
      end loop;
      book.is_open[step.owner] := true;
    end loop;
    book.held := held;
    book.running := running;
    book.is_changed := is_changed;
    perform usage_write_holds(commands, sources, units, tokens, limits, clock, book);
  end $$;

-- Writes a hold for each admission that was granted units.
create function usage_write_holds(
  commands usage_admit_command[], sources usage_billing[], units bigint[], tokens bigint[], limits bigint[],
  clock timestamptz, book usage_book
)
  returns void
  language plpgsql volatile
  as $$
  begin
    insert into usage_hold
    select c.request_id, book.subjects[c.owner], c.key_id, c.operation, c.model, c.stream,
      c.price_input, c.price_cached_input, c.price_cache_write, c.price_output,
      sources[c.ordinality], units[c.ordinality], tokens[c.ordinality], clock, clock + c.lease_ms * interval '1 millisecond',
      book.starts_at[4 * c.owner - 3], book.ends_at[4 * c.owner - 3], limits[c.plan][1], book.used[4 * c.owner - 3],
      book.starts_at[4 * c.owner - 2], book.ends_at[4 * c.owner - 2], limits[c.plan][2], book.used[4 * c.owner - 2],
      book.starts_at[4 * c.owner - 1], book.ends_at[4 * c.owner - 1], limits[c.plan][3], book.used[4 * c.owner - 1],
      0, 0, 0, 0, 0, 0, 0, 'counted', o.chain[3],
      usage_limited(o.chain, book.subjects), c.lease_ms
    from unnest(commands) with ordinality c
    cross join lateral (select usage_chain(c.key_id, book.keys, book.members, book.teams) as chain offset 0) o
    where units[c.ordinality] is not null;
  end $$;

-- Raises holds to a new total, or to as much of it as there is room for; lowers them to that where there is less.
create function usage_grow(
  commands usage_grow_command[], limits bigint[], inout book usage_book, out answers text
)
  language plpgsql volatile
  as $$
  declare
    step record;
    located record;
    used bigint[] := book.used;
    held bigint[] := book.held;
    is_changed boolean[] := book.is_changed;
    counters integer[];
    room bigint;
    granted bigint;
    grown uuid[] := '{}';
    grown_units bigint[] := '{}';
    grown_numbers integer[] := '{}';
  begin
    for step in
      select c.position, c.request_id, c.number, c.plan, c.units_total, c.units_total_min, book.extra_enabled[c.owner] as is_extra, h.*
      from unnest(commands) c
      left join lateral usage_hold_of(c.request_id, c.owner, book.subjects, book.starts_at) h on true
    loop
      if step.held is null then
        answers := concat(answers, ',[', step.position, ',"gone"]');
        continue;
      end if;
      counters := step.counters;
      if not step.is_in_force then
        located := usage_locate(step.request_id, counters, used, held, book);
        counters := located.counters;
        used := located.used;
        held := located.held;
        book := located.book;
      end if;
      room := case when step.first = 4 and not step.is_extra then 0 end;
      for i in step.first..cardinality(counters) - step.spare loop
        room := least(room,
          coalesce(limits[step.plan][i], book.limits[step.counters[i]]) - used[counters[i]] - held[counters[i]]);
      end loop;
      -- Where a limit was lowered, units that are held beyond the least are given back; but not by a command that comes
      -- twice or was overtaken, since its node forwards by the answer that it got.
      granted := greatest(
        case when step.number > step.growth then least(step.units_total_min, step.held) else step.held end,
        least(greatest(step.units_total, step.held), step.held + room));
      if granted < step.units_total_min then
        answers := concat(answers, ',[', step.position, ',"full"]');
        continue;
      end if;
      if granted <> step.held then
        for i in step.first..cardinality(counters) - step.spare loop
          held[counters[i]] := held[counters[i]] + granted - step.held;
        end loop;
        for i in 1..cardinality(counters) - 1 by 3 loop
          is_changed[(step.counters[i] + 3) / 4] := true;
        end loop;
      end if;
      grown := grown || step.request_id;
      grown_units := grown_units || granted;
      grown_numbers := grown_numbers || greatest(step.number, step.growth);
      answers := concat(answers, ',[', step.position, ',"granted",', granted, ']');
    end loop;
    book.used := used;
    book.held := held;
    book.is_changed := is_changed;

    update usage_hold set units = grown_units[array_position(grown, request_id)],
      growth = grown_numbers[array_position(grown, request_id)]
    where request_id = any (grown);
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
