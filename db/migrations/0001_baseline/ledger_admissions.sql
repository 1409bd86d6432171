-- Admits requests, and lets the holds of running requests grow. A hold is the amount that is reserved for a request.

-- The chain of a request, whose limits all apply to it: the key, its person, its team and its organization.
create function usage_chain(key uuid, keys uuid[], members uuid[], teams uuid[], organization uuid) returns uuid[]
  language sql immutable
  as $$ select array[key, members[array_position(keys, key)], teams[array_position(keys, key)], organization] $$;

-- The numbers (indexes in the batch's array of subjects) of the limited subjects that an admission counts in besides its
-- organization: its key, person and team, and the subjects of its chain that limit its model, by its id or an alias.
create function usage_others(
  chain uuid[], model text, aliases text[], ids uuid[], models text[], parent_ids uuid[]
)
  returns integer[]
  language plpgsql immutable
  as $$
  declare
    numbers integer[] := array_remove(array[array_position(ids, chain[1]), array_position(ids, chain[2]),
      array_position(ids, chain[3])], null);
    patterns text[];
    name text;
    number integer;
  begin
    if models is not null then
      patterns := usage_patterns(model);
      foreach name in array coalesce(aliases, '{}') loop
        patterns := patterns || usage_patterns(name);
      end loop;
      foreach number in array array_positions(parent_ids, chain[1]) || array_positions(parent_ids, chain[2])
        || array_positions(parent_ids, chain[3]) || array_positions(parent_ids, chain[4])
      loop
        if models[number] = any (patterns) then
          numbers := numbers || number;
        end if;
      end loop;
    end if;
    return numbers;
  end $$;

-- The ids of the subjects with these numbers (indexes in `ids`). Null: no number was given.
create function usage_ids(numbers integer[], ids uuid[]) returns uuid[]
  language plpgsql immutable
  as $$
  declare
    number integer;
    found uuid[];
  begin
    foreach number in array numbers loop
      found := found || ids[number];
    end loop;
    return found;
  end $$;

-- Makes the answer to an admission that was granted before, from its hold (the amount reserved for it). The held amounts in
-- the answer do not include this hold.
create function usage_granted_before(request uuid, owner integer, held bigint[], book usage_book) returns text
  language plpgsql stable
  as $$
  declare
    hold usage_hold := (select h from usage_hold h where h.request_id = request);
    at record := usage_locate(request, usage_counters(array[owner]), book.used, held, book);
    own bigint := case hold.source when 'plan' then hold.nanos else 0 end;
  begin
    return concat('"granted",', usage_organization_answer(
        array[hold.session_starts_at, hold.week_starts_at, hold.month_starts_at],
        array[hold.session_ends_at, hold.week_ends_at, hold.month_ends_at],
        array[hold.session_used, hold.week_used, hold.month_used, at.used[at.counters[4]]],
        book.extra_enabled[owner], usage_in_proportion(book.limits[4 * owner], hold.month_starts_at, hold.month_ends_at,
          usage_whole(hold.organization_id, 'month', hold.month_starts_at, hold.month_ends_at)),
        book.own[4 * owner - 3:4 * owner], book.raised[4 * owner - 3:4 * owner],
        usage_wholes(hold.organization_id, array[null, hold.week_starts_at, hold.month_starts_at],
          array[null, hold.week_ends_at, hold.month_ends_at])),
      ',[', at.held[at.counters[1]] - own, ',', at.held[at.counters[2]] - own, ',', at.held[at.counters[3]] - own, ',',
      at.held[at.counters[4]], '],null,', hold.nanos, ',', hold.output_tokens, ',"',
      hold.source, '"', ',"' || hold.team_id || '"');
  end $$;

-- What a subject has left in the fullest of its three windows, after its usage and what is held; null: it has no limits.
create function usage_free(subject integer, bounds bigint[], used bigint[], held bigint[]) returns bigint
  language sql immutable
  as $$
    select least(bounds[4 * subject - 3] - used[4 * subject - 3] - held[4 * subject - 3],
      bounds[4 * subject - 2] - used[4 * subject - 2] - held[4 * subject - 2],
      bounds[4 * subject - 1] - used[4 * subject - 1] - held[4 * subject - 1])
  $$;

-- Why an admission is refused:
-- - `concurrency`: a source (plan or extra usage) has room, but too many requests run.
-- - `exhausted`: settled usage alone fills the plan's windows, and extra usage is used up too.
-- - `reserved`: the windows are full only because of the holds of other requests that run.
create function usage_refusal(
  source usage_billing, nanos_least bigint, subjects integer[], is_extra boolean, limits bigint[], used bigint[]
)
  returns text
  language plpgsql immutable
  as $$
  declare
    subject integer;
    unused_of bigint;
    unused bigint;
    unused_extra bigint := limits[4 * subjects[1]] - used[4 * subjects[1]];
  begin
    if source is not null then
      return 'concurrency';
    end if;
    foreach subject in array subjects loop
      unused_of := least(limits[4 * subject - 3] - used[4 * subject - 3], limits[4 * subject - 2] - used[4 * subject - 2],
        limits[4 * subject - 1] - used[4 * subject - 1]);
      unused := least(unused, unused_of);
      unused_extra := least(unused_extra, case when subject <> subjects[1] then unused_of end);
    end loop;
    return case when coalesce(nanos_least <= unused, true) or (is_extra and nanos_least <= unused_extra) then 'reserved'
      else 'exhausted' end;
  end $$;

-- The part of an admission's answer about a subject other than its organization. `common` is what is the same for all
-- admissions of the batch (usage_subject_common); null if an earlier row about the subject already has it.
create function usage_subject_seen(subject integer, held bigint[], running bigint, common text) returns text
  language sql stable
  as $$
    select concat(',[', subject, ',[', held[4 * subject - 3], ',', held[4 * subject - 2], ',', held[4 * subject - 1], '],',
      running, common, ']')
  $$;

-- The part of an answer about a subject that is the same for all admissions of a batch: its place in the chain, its limits
-- (`first` is the index of its first counter), its usage, and its pattern of models.
create function usage_subject_common(
  place integer, first integer, limits bigint[], concurrent bigint, used bigint[], models text
)
  returns text
  language sql stable
  as $$
    select concat(',', place - 1, ',[', limits[first], ',', limits[first + 1], ',', limits[first + 2], ',',
      coalesce(concurrent::text, 'null'), '],[', used[first], ',', used[first + 1], ',', used[first + 2], ']',
      ',' || to_json(models)::text)
  $$;

-- The source (plan or extra usage) that an admission is billed to: the first that has room for all of it, or otherwise the
-- first that has room for the least amount that is of use (`nanos_least`). `room` is what the limits leave of the plan, and
-- `room_extra` of extra usage; null: unlimited.
create function usage_source(nanos bigint, nanos_least bigint, room bigint, is_extra boolean, room_extra bigint)
  returns usage_billing
  language sql immutable
  as $$
    select case
      when coalesce(nanos <= room, true) then 'plan'::usage_billing
      when is_extra and coalesce(nanos <= room_extra, true) then 'extra'
      when nanos_least <= room then 'plan'
      when is_extra and nanos_least <= room_extra then 'extra' end
  $$;

-- The ids of admissions that already have a record. The query also has the range of the ids, because the planner would
-- search every month's partition for the ids alone.
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

-- Returns each admission with what it asks for. `known` is its answer, if the request is over or its organization does not
-- exist; `held` is what the admission holds, if it was granted before.
create function usage_admissions(
  commands usage_admit_command[], over uuid[], ids uuid[], extra_enabled boolean[]
)
  returns table (
    n bigint, "position" integer, request_id uuid, owner integer, key_id uuid, model text, aliases text[], plan integer,
    concurrent_limit bigint, price_output bigint, input_nanos bigint, output_tokens bigint, nanos bigint, nanos_least bigint,
    is_extra boolean, extra integer, held bigint, known text
  )
  language sql stable
  as $$
    select c.ordinality, c.position, c.request_id, c.owner, c.key_id, c.model, c.aliases, c.plan, c.concurrent_limit,
      c.price_output, c.input_nanos, c.output_tokens,
      c.input_nanos + usage_cost(c.output_tokens, c.price_output),
      c.input_nanos + usage_cost(c.output_tokens_min, c.price_output),
      extra_enabled[c.owner], 4 * c.owner, h.nanos,
      case when c.request_id = any (over) then '"over"' when extra_enabled[c.owner] is null then '"unknown"' end
    from unnest(commands) with ordinality c
    left join lateral (
      select h.nanos from usage_hold h where h.request_id = c.request_id and h.organization_id = ids[c.owner] offset 0
    ) h on true
  $$;

-- The number of output tokens that a source (plan or extra usage) has room for, at most the number that was asked for
-- (`tokens`).
create function usage_tokens(nanos bigint, room bigint, input_nanos bigint, price_output bigint, tokens bigint) returns bigint
  language sql immutable
  as $$ select case when coalesce(nanos <= room, true) then tokens
    else 1000 * (room - input_nanos) / price_output end $$;

-- The state before an admission, as the admission's answer shows it: the organization's number, what is held of the four
-- kinds of windows, and the rows of the other subjects.
create function usage_seen(owner integer, held bigint[], rows text) returns text
  language sql stable
  as $$
    select concat(owner, ',[', held[4 * owner - 3], ',', held[4 * owner - 2], ',', held[4 * owner - 1], ',', held[4 * owner],
      '],', coalesce('[' || substr(rows, 2) || ']', 'null'))
  $$;

-- What an admission was granted, and the limited subjects and the team that it counts in; null nanos: nothing was granted.
create type usage_grant as (source usage_billing, nanos bigint, tokens bigint, subjects uuid[], team uuid);

-- Admits requests: holds what each may use in the plan's windows or, if they are full, as extra usage. A null room is
-- unlimited. `grants` has the grant of each command that was granted something, at the command's index. `plans` has, for
-- each organization, the plan whose limits `bounds` has at the moment. Requests of the same key for the same model often
-- follow each other, so the subjects that were found for a request are used for the next one too.
create function usage_admit(
  commands usage_admit_command[], over uuid[], limits bigint[], clock timestamptz, inout book usage_book, out answers text
)
  language plpgsql volatile
  as $$
  declare
    step record;
    held bigint[] := book.held; running bigint[] := book.running; is_changed boolean[] := book.is_changed;
    bounds bigint[] := case when book.wholes is null then book.limits else usage_bounds(book) end;
    concurrent bigint[] := book.concurrent; plans integer[];
    subject integer; room bigint; room_others bigint; room_extra bigint; is_crowded boolean; is_first boolean;
    owner integer; key uuid; model text; chain uuid[]; others integer[];
    rows text; seen text; got usage_grant; grants usage_grant[];
  begin
    for step in select * from usage_admissions(commands, over, book.subjects, book.extra_enabled) loop
      if step.known is not null or step.held is not null then
        answers := concat(answers, ',[', step.position, ',',
          coalesce(step.known, usage_granted_before(step.request_id, step.owner, held, book)), ']');
        continue;
      end if;
      if plans[step.owner] is distinct from step.plan then
        bounds[step.extra - 3:step.extra - 1] := usage_plan_limits(limits, step.plan, step.extra, book.own, book.raised,
          book.starts_at, book.ends_at, book.wholes);
        plans[step.owner] := step.plan;
      end if;
      if (step.owner, step.key_id, step.model) is distinct from (owner, key, model) then
        owner := step.owner; key := step.key_id; model := step.model;
        chain := usage_chain(key, book.keys, book.members, book.teams, book.subjects[owner]);
        others := usage_others(chain, model, step.aliases, book.subjects, book.models, book.parent_ids);
        got.subjects := usage_ids(others, book.subjects); got.team := chain[3]; is_first := true;
      end if;
      concurrent[owner] := usage_own(step.concurrent_limit, book.own[step.extra], book.raised[step.extra]);
      room_others := null; is_crowded := running[owner] >= concurrent[owner]; rows := null;
      foreach subject in array others loop
        room_others := least(room_others, usage_free(subject, bounds, book.used, held));
        is_crowded := is_crowded or running[subject] >= concurrent[subject];
        rows := concat(rows, usage_subject_seen(subject, held, running[subject], case when is_first then usage_subject_common(
          array_position(chain, coalesce(book.parent_ids[subject], book.subjects[subject])), 4 * subject - 3, bounds,
          concurrent[subject], book.used, book.models[subject]) end));
      end loop;
      is_first := false; room := least(usage_free(owner, bounds, book.used, held), room_others);
      room_extra := case when step.is_extra then
        least(bounds[step.extra] - book.used[step.extra] - held[step.extra], room_others) end;
      seen := usage_seen(owner, held, rows);
      got.source := usage_source(step.nanos, step.nanos_least, room, step.is_extra, room_extra);
      if got.source is null or is_crowded then
        answers := concat(answers, ',[', step.position, ',"', usage_refusal(got.source, step.nanos_least, owner || others,
          step.is_extra, bounds, book.used), '",', seen, ',"' || usage_zone(book.subjects[owner], clock) || '"', ']');
        continue;
      end if;
      got.tokens := usage_tokens(step.nanos, case got.source when 'plan' then room else room_extra end,
        step.input_nanos, step.price_output, step.output_tokens);
      got.nanos := step.input_nanos + usage_cost(got.tokens, step.price_output);
      grants[step.n] := got;
      answers := concat(answers, ',[', step.position, ',"granted",', seen, ',', got.nanos, ',', got.tokens,
        ',"', got.source, '"', ',"' || got.team || '"', ']');
      foreach subject in array owner || others loop
        running[subject] := running[subject] + 1;
        is_changed[subject] := true;
        continue when got.source = 'extra' and subject = owner;
        held[4 * subject - 3] := held[4 * subject - 3] + got.nanos;
        held[4 * subject - 2] := held[4 * subject - 2] + got.nanos;
        held[4 * subject - 1] := held[4 * subject - 1] + got.nanos;
      end loop;
      held[step.extra] := held[step.extra] + case got.source when 'extra' then got.nanos else 0 end;
      book.is_open[owner] := true;
    end loop;
    book.held := held; book.running := running; book.is_changed := is_changed;
    perform usage_write_holds(commands, grants, limits, clock, book);
  end $$;

-- Writes a hold for each admission that was granted an amount. A shortened window has only a share of its limit. The
-- function for this share is called only for windows that may be shortened, because its call costs more than all other
-- work for a hold.
create function usage_write_holds(
  commands usage_admit_command[], grants usage_grant[], limits bigint[], clock timestamptz, book usage_book
)
  returns void
  language plpgsql volatile
  as $$
  begin
    insert into usage_hold
    select c.request_id, book.subjects[c.owner], c.key_id, c.operation, c.model, c.stream,
      c.price_input, c.price_cached_input, c.price_cache_write, c.price_output, c.price_search, c.input_count,
      g.source, g.nanos, g.tokens, clock, clock + c.lease_ms * interval '1 millisecond',
      book.starts_at[4 * c.owner - 3], book.ends_at[4 * c.owner - 3],
      usage_own(limits[c.plan][1], book.own[4 * c.owner - 3], book.raised[4 * c.owner - 3]), book.used[4 * c.owner - 3],
      book.starts_at[4 * c.owner - 2], book.ends_at[4 * c.owner - 2],
      case when book.wholes is null then usage_own(limits[c.plan][2], book.own[4 * c.owner - 2], book.raised[4 * c.owner - 2])
        else usage_in_proportion(usage_own(limits[c.plan][2], book.own[4 * c.owner - 2], book.raised[4 * c.owner - 2]),
          book.starts_at[4 * c.owner - 2], book.ends_at[4 * c.owner - 2], book.wholes[4 * c.owner - 2]) end,
      book.used[4 * c.owner - 2],
      book.starts_at[4 * c.owner - 1], book.ends_at[4 * c.owner - 1],
      case when book.wholes is null then usage_own(limits[c.plan][3], book.own[4 * c.owner - 1], book.raised[4 * c.owner - 1])
        else usage_in_proportion(usage_own(limits[c.plan][3], book.own[4 * c.owner - 1], book.raised[4 * c.owner - 1]),
          book.starts_at[4 * c.owner - 1], book.ends_at[4 * c.owner - 1], book.wholes[4 * c.owner - 1]) end,
      book.used[4 * c.owner - 1],
      0, 0, 0, 0, 0, 0, 0, 'counted', g.team, g.subjects, c.lease_ms, c.is_repeatable
    from unnest(commands) with ordinality c
    cross join lateral (select (grants[c.ordinality]).*) g
    where g.nanos is not null;
  end $$;

-- Returns the limits that leave no room for `more` nanos in a hold, so that the request's node can name one. Each has whose
-- limit it is, the kind of its window, when the window ends, and the pattern of models if it is a limit for models.
-- `before` are the hold's counters before some were replaced by those of past windows.
create function usage_full_limits(
  request uuid, more bigint, before integer[], counters integer[], first integer, spare integer,
  bounds bigint[], used bigint[], held bigint[], book usage_book
)
  returns text
  language sql stable
  as $$
    select string_agg(concat(',[', case n.id when h.key_id then 0 when h.team_id then 2 when h.organization_id then 3 else 1 end,
        ',', n.kind, ',', usage_ms((array[h.session_ends_at, h.week_ends_at, h.month_ends_at, h.month_ends_at])[n.kind + 1]),
        ',' || to_json(n.models)::text, ']'), '' order by i)
    from generate_series(first, cardinality(counters) - spare) i
    cross join lateral (select (before[i] - 1) % 4 as kind, book.models[(before[i] + 3) / 4] as models,
      coalesce(book.parent_ids[(before[i] + 3) / 4], book.subjects[(before[i] + 3) / 4]) as id) n
    cross join usage_hold h
    where h.request_id = request and bounds[counters[i]] - used[counters[i]] - held[counters[i]] < more
  $$;

-- Raises each hold to its new total, or to as much of it as there is room for. If a lowered limit leaves less room than is
-- held, the hold is lowered to that room. A command that comes twice, or after a later one, lowers nothing, because its
-- node forwards by the answer that it got before.
create function usage_grow(
  commands usage_grow_command[], limits bigint[], inout book usage_book, out answers text
)
  language plpgsql volatile
  as $$
  declare
    step record;
    located record;
    used bigint[] := book.used; held bigint[] := book.held; is_changed boolean[] := book.is_changed;
    bounds bigint[] := case when book.wholes is null then book.limits else usage_bounds(book) end;
    plans integer[]; owner integer; chain uuid[]; subjects integer[]; now integer[]; counters integer[];
    subject integer; room bigint; granted bigint;
    grown uuid[] := '{}'; grown_nanos bigint[] := '{}'; grown_numbers integer[] := '{}';
  begin
    for step in
      select c.position, c.request_id, c.number, c.plan, c.nanos_total, c.nanos_total_min, c.owner, 4 * c.owner as extra,
        book.extra_enabled[c.owner] as is_extra, h.*
      from unnest(commands) c
      left join lateral usage_hold_of(c.request_id, c.owner, book.subjects, book.starts_at) h on true
    loop
      if step.held is null then
        answers := concat(answers, ',[', step.position, ',"gone"]');
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
        counters := located.counters; used := located.used; held := located.held; book := located.book;
        bounds := usage_past_bounds(bounds, now, counters, limits, step.plan, step.extra, book);
      end if;
      room := case when step.first = 4 and not step.is_extra then 0 end;
      for i in step.first..cardinality(counters) - step.spare loop
        room := least(room, bounds[counters[i]] - used[counters[i]] - held[counters[i]]);
      end loop;
      granted := greatest(
        case when step.number > step.growth then least(step.nanos_total_min, step.held) else step.held end,
        least(greatest(step.nanos_total, step.held), step.held + room));
      if granted < step.nanos_total_min then
        answers := concat(answers, ',[', step.position, ',"full"', usage_full_limits(step.request_id,
          step.nanos_total_min - step.held, now, counters, step.first, step.spare, bounds, used, held, book), ']');
        continue;
      end if;
      if granted <> step.held then
        for i in step.first..cardinality(counters) - step.spare loop
          held[counters[i]] := held[counters[i]] + granted - step.held;
        end loop;
        foreach subject in array subjects loop
          is_changed[subject] := true;
        end loop;
      end if;
      grown := grown || step.request_id;
      grown_nanos := grown_nanos || granted;
      grown_numbers := grown_numbers || greatest(step.number, step.growth);
      answers := concat(answers, ',[', step.position, ',"granted",', granted, ']');
    end loop;
    book.used := used; book.held := held; book.is_changed := is_changed;
    update usage_hold set nanos = grown_nanos[array_position(grown, request_id)],
      growth = grown_numbers[array_position(grown, request_id)]
    where request_id = any (grown);
  end $$;

-- Writes a row into the table that every admission writes to, and rolls it back: it fails if an admission would. A node
-- checks each second whether it can admit; as a function, the statements are compiled only once.
create function usage_trial() returns void
  language plpgsql volatile
  as $$
  begin
    insert into usage_hold (
      request_id, organization_id, key_id, operation, model, stream,
      price_input, price_cached_input, price_cache_write, price_output, source, nanos, output_tokens,
      admitted_at, lease_until, session_starts_at, session_ends_at, session_used,
      week_starts_at, week_ends_at, week_used, month_starts_at, month_ends_at, month_used, lease_ms, is_repeatable)
    select id, id, id, '', '', false, 0, 0, 0, 0, 'plan', 0, 0, at, at, at, at, 0, at, at, 0, at, at, 0, 0, false
    from (select gen_random_uuid() as id, clock_timestamp() as at) as trial;
    raise exception 'taken back' using errcode = 'SL000';
  exception when sqlstate 'SL000' then null;
  end $$;
