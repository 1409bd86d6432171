-- The verbs of the ledger: what commands and answers mean is said in src/store/ledger.ts. Each verb is one function that
-- carries out all of a batch's commands of its kind, in their order, each seeing those before it; `usage_batch` calls
-- them, and reads and writes the book once. `limits` has a row for each plan that commands name by its number, in the
-- order of window kinds; null does not limit, and least() passes nulls by. Loops work on numbers in arrays, copied out of
-- the book, and rows are written from arrays at the end: in PL/pgSQL both cost far less than composites. What a statement
-- takes is mostly its beginning, so there are few of them.

-- The commands of a batch. `position` says where the answer belongs, `owner` which of the batch's organizations it is of.

create type usage_admit_command as (
  position integer, request_id uuid, owner integer, key_id uuid, operation text, model text, stream boolean,
  price_input bigint, price_cached_input bigint, price_cache_write bigint, price_output bigint,
  plan integer, concurrent_limit bigint,
  input_units bigint, output_tokens bigint, output_tokens_min bigint, lease_ms bigint
);
create type usage_grow_command as (
  position integer, request_id uuid, owner integer, number integer,
  plan integer, units_total bigint, units_total_min bigint
);
create type usage_checkpoint_command as (
  position integer, request_id uuid, owner integer, number integer,
  input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
  reasoning_tokens bigint, usage_source text, lease_ms bigint
);
create type usage_settle_command as (
  position integer, request_id uuid, owner integer, key_id uuid, operation text, model text, stream boolean,
  price_input bigint, price_cached_input bigint, price_cache_write bigint, price_output bigint,
  plan integer,
  input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
  reasoning_tokens bigint, usage_source text,
  units bigint, outcome text, stopped_by text, error_code text,
  upstream text, attempts integer, tried jsonb, first_part_ms bigint, report_rejected jsonb
);

-- Answers are JSON, each an array behind a comma: a row of columns for each would cost more than all that is decided. It has
-- the command's position and a word, and then what was granted or charged: units, and for an admission its output tokens, its
-- source, and the team that its key is in. Before these an admission, but one that is `over` or `unknown`, has what it saw:
-- its organization, what is held of the four kinds just before it, and a row for each limited key and team: 0 for the key
-- and 1 for the team, three limits and the concurrent one, what is used of the three windows and held, and how many run. The
-- organization is its number in the batch, whose answer lists them once: when the three windows begin and end, what is used
-- of the four kinds, whether there is extra usage, and its cap. An admission that was granted before has its own there.

-- Milliseconds since 1970, of which the node makes an instant.
create function usage_ms(at timestamptz) returns bigint
  language sql stable
  as $$ select trunc(extract(epoch from at) * 1000)::bigint $$;

-- The windows of an organization as admissions see them, and its extra usage.
create function usage_organization_answer(
  starts timestamptz[], ends timestamptz[], used bigint[], is_extra boolean, extra_cap bigint
)
  returns text
  language sql stable
  as $$
    select concat('[[', usage_ms(starts[1]), ',', usage_ms(starts[2]), ',', usage_ms(starts[3]), ',',
      usage_ms(ends[1]), ',', usage_ms(ends[2]), ',', usage_ms(ends[3]), '],[', array_to_string(used, ','), '],',
      is_extra::text, ',', coalesce(extra_cap::text, 'null'), ']')
  $$;

-- The organizations of a batch, in their order; null for one that does not exist.
create function usage_organizations_answer(book usage_book) returns text
  language plpgsql stable
  as $$
  declare
    answer text;
  begin
    for extra in 4..4 * cardinality(book.extra_enabled) by 4 loop
      answer := concat(answer || ',', case when book.extra_enabled[extra / 4] is null then 'null' else
        usage_organization_answer(book.starts_at[extra - 3:extra - 1], book.ends_at[extra - 3:extra - 1],
          book.used[extra - 3:extra], book.extra_enabled[extra / 4], book.limits[extra]) end);
    end loop;
    return answer;
  end $$;

-- The counters of a request, by their places in the state: the three windows of its organization, then those of its other
-- subjects, and last the organization's extra usage. So what is billed to the plan counts in all but the last, and what is
-- billed to extra usage in all from the fourth on. `chain` names the other subjects; those that have no limits are left out.
create function usage_chain_counters(owner integer, chain uuid[], ids uuid[]) returns integer[]
  language plpgsql immutable
  as $$
  declare
    counters integer[] := array[4 * owner - 3, 4 * owner - 2, 4 * owner - 1];
    place integer;
  begin
    for n in 1..cardinality(chain) loop
      place := 4 * array_position(ids, chain[n]);
      if place is not null then
        counters := counters || array[place - 3, place - 2, place - 1];
      end if;
    end loop;
    return counters || 4 * owner;
  end $$;

create function usage_counters(owner integer, chain uuid[], ids uuid[]) returns integer[]
  language sql immutable
  as $$
    select case when chain is null then array[4 * owner - 3, 4 * owner - 2, 4 * owner - 1, 4 * owner]
      else usage_chain_counters(owner, chain, ids) end
  $$;

-- The other subjects that a request of a key counts in, where they are limited.
create function usage_chain(key uuid, keys uuid[], teams uuid[]) returns uuid[]
  language sql immutable
  as $$ select case when keys is not null then array[key, teams[array_position(keys, key)]] end $$;

-- The subjects of a chain that have limits; null where none has.
create function usage_limited(chain uuid[], ids uuid[]) returns uuid[]
  language plpgsql immutable strict
  as $$ begin return nullif(array(select id from unnest(chain) id where id = any (ids)), '{}'); end $$;

-- A request's hold, and which of its counters it counts in: those from `first` on, but for the last `spare`.
create function usage_hold_of(request uuid, owner integer, ids uuid[], starts timestamptz[])
  returns table (held bigint, growth integer, counters integer[], first integer, spare integer, is_in_force boolean)
  language sql stable
  as $$
    select h.units, h.growth, usage_counters(owner, h.subjects, ids),
      case h.source when 'plan' then 1 else 4 end, case h.source when 'plan' then 1 else 0 end,
      h.session_starts_at = starts[4 * owner - 3] and h.week_starts_at = starts[4 * owner - 2]
        and h.month_starts_at = starts[4 * owner - 1]
    from usage_hold h where h.request_id = request and h.organization_id = ids[owner] offset 0
  $$;

-- Ends requests. One without a hold was given up before its admission was answered: its record, which charges nothing,
-- keeps an admission that comes late from running.
create function usage_settle(
  commands usage_settle_command[], limits bigint[], is_recovery boolean, clock timestamptz,
  inout book usage_book, out answers text
)
  language plpgsql volatile
  as $$
  declare
    step record;
    located record;
    used bigint[] := book.used;
    held bigint[] := book.held;
    running bigint[] := book.running;
    is_changed boolean[] := book.is_changed;
    counters integer[];
    subject integer;
    unused bigint;
    charge bigint;
    -- The charge of each command; null: it has a record already.
    charges bigint[] := array_fill(null::bigint, array[cardinality(commands)]);
    after bigint[] := array_fill(null::bigint, array[cardinality(commands), 3]);
  begin
    for step in
      select c.ordinality as n, c.position, c.request_id, c.plan, c.units, h.*
      from unnest(commands) with ordinality c
      left join lateral usage_hold_of(c.request_id, c.owner, book.subjects, book.starts_at) h on true
    loop
      if step.held is null then
        -- A request never has a hold and a record: where its hold is gone, so may be what it was to do.
        charges[step.n] := case when not exists (
          select from usage_record r where r.request_id = step.request_id) then 0 end;
        answers := concat(answers, ',[', step.position, coalesce(',"settled",' || charges[step.n], ',"already"'), ']');
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
      -- The charge is what every limit leaves beside the holds of others. A limit that was lowered meanwhile takes back
      -- nothing that was granted, to make room for those holds.
      charge := step.units;
      for i in step.first..cardinality(counters) - step.spare loop
        unused := coalesce(limits[step.plan][i], book.limits[step.counters[i]]) - used[counters[i]];
        charge := least(charge, unused - greatest(0, least(held[counters[i]], unused) - step.held));
      end loop;
      charge := greatest(0, charge);
      for i in step.first..cardinality(counters) - step.spare loop
        used[counters[i]] := used[counters[i]] + charge;
        held[counters[i]] := held[counters[i]] - step.held;
      end loop;
      for i in 1..cardinality(counters) - 1 by 3 loop
        subject := (step.counters[i] + 3) / 4;
        running[subject] := running[subject] - 1;
        is_changed[subject] := true;
      end loop;
      charges[step.n] := charge;
      for kind in 1..3 loop
        after[step.n][kind] := used[counters[kind]];
      end loop;
      answers := concat(answers, ',[', step.position, ',"settled",', charge, ']');
    end loop;
    book.used := used;
    book.held := held;
    book.running := running;
    book.is_changed := is_changed;
    perform usage_write_records(commands, charges, after, is_recovery, clock, book.subjects);
  end $$;

-- Writes a record for each command that has a charge, and deletes the holds of those that had one.
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
      coalesce(h.price_output, c.price_output), coalesce(h.source, 'plan'), coalesce(h.units, 0),
      charges[c.n], c.units - charges[c.n], coalesce(h.admitted_at, clock), clock,
      c.outcome, c.stopped_by, c.error_code, is_recovery,
      c.input_tokens, c.cached_input_tokens, c.cache_write_tokens, c.output_tokens, c.reasoning_tokens, c.usage_source,
      h.session_starts_at, h.session_ends_at, h.session_limit, h.session_used, after[c.n][1],
      h.week_starts_at, h.week_ends_at, h.week_limit, h.week_used, after[c.n][2],
      h.month_starts_at, h.month_ends_at, h.month_limit, h.month_used, after[c.n][3],
      c.upstream, c.attempts, c.tried, c.first_part_ms, c.report_rejected, h.team_id, h.subjects
    from (select c.*, c.ordinality as n from unnest(commands) with ordinality c) c
    left join lateral (
      select * from usage_hold h where h.request_id = c.request_id and h.organization_id = ids[c.owner] offset 0
    ) h on true
    where charges[c.n] is not null;
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
        book.extra_enabled[owner], book.limits[4 * owner]),
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

-- The limits and the use of an admission's subjects beside its organization; null where it has none.
create function usage_subjects_answer(counters integer[], chain uuid[], held bigint[], running bigint[], book usage_book)
  returns text
  language plpgsql immutable strict
  as $$
  declare
    readings bigint[];
    c integer;
  begin
    for i in 4..cardinality(counters) - 1 by 3 loop
      c := counters[i];
      readings := readings || array[[array_position(chain, book.subjects[(c + 3) / 4]) - 1,
        book.limits[c], book.limits[c + 1], book.limits[c + 2], book.concurrent[(c + 3) / 4],
        book.used[c], book.used[c + 1], book.used[c + 2], held[c], held[c + 1], held[c + 2], running[(c + 3) / 4]]];
    end loop;
    return array_to_json(readings)::text;
  end $$;

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
    requests uuid[] := array(select c.request_id from unnest(commands) c order by 1);
  begin
    return array(
      select r.request_id from usage_record r where r.request_id = any (requests)
        and r.request_id >= requests[1] and r.request_id <= requests[cardinality(requests)]);
  end $$;

-- Admissions with what they count in. `known`: the answer to one of a request that is over, or of no organization; `held`: what
-- one that was granted before holds.
create function usage_admissions(
  commands usage_admit_command[], over uuid[], ids uuid[], extra_enabled boolean[], keys uuid[], teams uuid[]
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
      extra_enabled[c.owner], usage_chain(c.key_id, keys, teams),
      usage_counters(c.owner, usage_chain(c.key_id, keys, teams), ids), h.units,
      case when c.request_id = any (over) then '"over"' when extra_enabled[c.owner] is null then '"unknown"' end
    from unnest(commands) with ordinality c
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
    sources usage_billing[];
    units bigint[];
    tokens bigint[];
  begin
    for step in
      select * from usage_admissions(commands, over, book.subjects, book.extra_enabled, book.keys, book.teams)
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
      for i in 4..count - 1 by 3 loop
        is_crowded := is_crowded or running[(counters[i] + 3) / 4] >= book.concurrent[(counters[i] + 3) / 4];
      end loop;
      seen := concat(step.owner, ',[', held[counters[1]], ',', held[counters[2]], ',', held[counters[3]], ',',
        held[counters[count]], '],', coalesce(usage_subjects_answer(counters, step.chain, held, running, book), 'null'));
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
        ',"', sources[step.n], '"', ',"' || step.chain[2] || '"', ']');
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
      0, 0, 0, 0, 0, 0, 0, 'counted', (usage_chain(c.key_id, book.keys, book.teams))[2],
      usage_limited(usage_chain(c.key_id, book.keys, book.teams), book.subjects), c.lease_ms
    from unnest(commands) with ordinality c where units[c.ordinality] is not null;
  end $$;

-- Extends leases and says how far requests are. Counts only rise, and one that was overtaken on its way changes none.
create function usage_checkpoint(commands usage_checkpoint_command[], organizations uuid[], clock timestamptz) returns text
  language plpgsql volatile
  as $$
  declare
    answers text;
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
          where o.request_id = c.request_id and o.organization_id = organizations[c.owner] offset 0
        ) o
      ) c
      where h.ctid = c.place
      returning c.position
    )
    select string_agg(concat(',[', c.position, ',"',
      case when c.position in (select e.position from extended e) then 'extended' else 'gone' end, '"]'), '')
    into answers from unnest(commands) c;
    return answers;
  end $$;

-- One batch: settles, then grows, then admits; checkpoints last. A request id may stand in a batch once. A refusal is an
-- answer and fails nothing. Answers the milliseconds of its clock, the microseconds that it waited for its locks, the
-- organizations where it admits, and its answers, as JSON. The settings keep it on the indexes: planned while its tables are empty, it would read them whole ever
-- after.
create function usage_batch(
  organizations uuid[], admits usage_admit_command[], grows usage_grow_command[], checkpoints usage_checkpoint_command[],
  settles usage_settle_command[], limits bigint[]
)
  returns text
  language plpgsql volatile
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
  as $$
  declare
    began timestamptz := clock_timestamp();
    clock timestamptz := usage_lock(organizations);
    waited_us bigint := date_part('epoch', clock_timestamp() - began) * 1000000;
    seen text;
    answers text;
    book usage_book;
    done record;
  begin
    if cardinality(admits) + cardinality(grows) + cardinality(settles) > 0 then
      book := usage_load(organizations, clock);
      if true = any (book.has_subjects) then
        book := usage_load_subjects(array(select c.key_id from unnest(admits) c),
          array(select c.request_id from unnest(settles) c union all select c.request_id from unnest(grows) c), book);
      end if;
      if cardinality(settles) > 0 then
        done := usage_settle(settles, limits, false, clock, book);
        book := done.book;
        answers := concat(answers, done.answers);
      end if;
      if cardinality(grows) > 0 then
        done := usage_grow(grows, limits, book);
        book := done.book;
        answers := concat(answers, done.answers);
      end if;
      if cardinality(admits) > 0 then
        seen := usage_organizations_answer(book);
        done := usage_admit(admits, usage_over(admits), limits, clock, book);
        book := done.book;
        answers := concat(answers, done.answers);
      end if;
      perform usage_save(book);
    end if;
    if cardinality(checkpoints) > 0 then
      answers := concat(answers, usage_checkpoint(checkpoints, organizations, clock));
    end if;
    return concat('[', usage_ms(clock), ',', waited_us, ',[', seen, ']', answers, ']');
  end $$;

-- The same on a server, where `synchronous_commit` is off for the session: a batch that is committed without waiting for the
-- disk, so that nobody waits for a disk under an organization's lock, and behind it a barrier whose commit waits. The log is
-- ordered, so it covers the batch. One statement, and not two in a row, because each is a journey of its own through both
-- sides of the wire.
create procedure usage_batch_durably(
  organizations uuid[], admits usage_admit_command[], grows usage_grow_command[], checkpoints usage_checkpoint_command[],
  settles usage_settle_command[], limits bigint[], out answers text
)
  language plpgsql
  as $$
  begin
    answers := usage_batch(organizations, admits, grows, checkpoints, settles, limits);
    commit;
    perform set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'sluice', '');
  end $$;

-- Settles requests whose lease has lapsed, the longest gone first, `most` at most; answers how many. Any node may do it. Dead
-- rows are not read again and again: looked at are the requests that the last sweep has `seen` running, by their keys, and
-- those whose ids begin at `since`, where it is not null; for the next sweep it answers both, and its clock. A node whose
-- clock is slow by more than a minute makes ids that only a sweep of all finds. A lease that lies further ahead than it can
-- was given by a clock that was set back since: from now on it has its length, which its node counts from earlier on.
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
      array(select request_id from live where lease_until > clock + (lease_ms + 1000) * interval '1 millisecond'),
      array(select request_id from live where lease_until <= clock order by lease_until limit most)
    into seen, newest, far, lapsed;
    -- The next sweep begins a minute before the slower clock, the store's or that of the node which made the newest ID;
    -- where nothing runs, it begins where this one did.
    since := case when newest is null then since else least(seen[1001],
      usage_record_id(least(clock, usage_record_time(newest)) - interval '1 minute')) end;
    if cardinality(far) > 0 then
      -- A hold whose lease is extended at this moment is left to the next sweep: this one waits for no row.
      far := array(select h.request_id from usage_hold h where h.request_id = any (far) for no key update skip locked);
      update usage_hold h set lease_until = clock + h.lease_ms * interval '1 millisecond'
      where h.request_id = any (far) and h.lease_until > clock + (h.lease_ms + 1000) * interval '1 millisecond';
    end if;
    settled := 0;
    if cardinality(lapsed) > 0 then
      -- Before the lock: for requests of a node whose clock is far off.
      perform usage_partition(request_id) from unnest(lapsed) request_id;
      settled := usage_settle_lapsed(lapsed, charge_holds, clock_min, clock_max);
    end if;
  end $$;

-- Settles those whose lease has lapsed still, now that nobody else can change it: at their last checkpoint or, with
-- `charge_holds`, streams as if all that was held had been used, under the limits in force. What nobody streamed was not
-- delivered, and its checkpoints say so. A clock that is not between `clock_min` and `clock_max` was set, forward or back
-- (and it may have gone back and forward again since the last sweep): then no lease has lapsed by it.
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
    commands usage_settle_command[];
    limits bigint[];
    book usage_book;
  begin
    select array_agg(
        row(
          n, h.request_id, array_position(organizations, h.organization_id),
          null, null, null, null, null, null, null, null, n,
          h.input_tokens, h.cached_input_tokens, h.cache_write_tokens, h.produced_tokens, h.reasoning_tokens,
          h.usage_source,
          case when charge_holds and h.stream then h.units else least(1000000000000000,
            h.input_tokens * h.price_input + h.cached_input_tokens * h.price_cached_input
            + h.cache_write_tokens * h.price_cache_write + h.produced_tokens * h.price_output) end,
          'failed', null, 'internal_error', null, null, null, null, null
        )::usage_settle_command),
      array_agg(case when p.name is null then array[h.session_limit, h.week_limit, h.month_limit]
        else array[p.session_units, p.week_units, p.month_units] end)
    into commands, limits
    from (
      select h.*, row_number() over () as n from usage_hold h where h.request_id = any (lapsed) and h.lease_until <= clock
        and coalesce(clock >= clock_min, true) and coalesce(clock <= clock_max, true)
    ) h
    left join lateral (select o.plan from organization o where o.id = h.organization_id offset 0) o on true
    left join lateral (select * from plan p where p.name = o.plan offset 0) p on true;
    if commands is null then
      return 0;
    end if;
    book := usage_load(organizations, clock);
    if true = any (book.has_subjects) then
      book := usage_load_subjects('{}', lapsed, book);
    end if;
    book := (usage_settle(commands, limits, true, clock, book)).book;
    perform usage_save(book);
    return cardinality(commands);
  end $$;
