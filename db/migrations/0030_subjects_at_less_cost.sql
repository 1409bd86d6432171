-- Limited keys, people and teams cost a batch less (docs/decisions/2026-11-25-subjects-one-by-one.md). What is counted, and
-- what is answered, is as 0004 and 0026 say.

-- Adds to the state of a batch the limited keys, people and teams of its admissions and of the holds of its other requests.
-- A row is appended at a time: an aggregate for each column costs the batch three times as much. One whose windows are those
-- of its organization, as nearly all are, needs no roll.
create or replace function usage_load_subjects(named_keys uuid[], requests uuid[], inout book usage_book)
  language plpgsql volatile
  as $$
  declare
    own record;
    subject integer := cardinality(book.subjects);
    organization integer;
    starts timestamptz[];
  begin
    select array_agg(s.subject_id), array_agg(s.team_id), array_agg(s.member_id) into book.keys, book.teams, book.members
    from (select distinct k.id from unnest(named_keys) k (id) offset 0) k
    cross join lateral (select * from usage_subject s where s.subject_id = k.id offset 0) s
    where s.organization_id = any (book.subjects);
    for own in
      select s.*, n.generation, n.updates, n.running, n.starts_at, n.ends_at, n.used, n.held
      from (
        select unnest(book.keys || book.teams || book.members) as id union
        select unnest(h.subjects) from unnest(requests) r (id)
        cross join lateral (select o.subjects from usage_hold o where o.request_id = r.id offset 0) h
      ) i
      cross join lateral (
        select * from usage_subject s where s.subject_id = i.id and s.counted_from is not null offset 0
      ) s
      left join lateral (
        select * from usage_now n where n.subject_id = i.id order by n.generation desc limit 1
      ) n on true
      order by i.id
    loop
      subject := subject + 1;
      organization := array_position(book.subjects, own.organization_id);
      starts := book.starts_at[4 * organization - 3:4 * organization];
      book.subjects[subject] := own.subject_id;
      book.parents[subject] := organization;
      book.generations[subject] := own.generation;
      book.updates[subject] := coalesce(own.updates, 0);
      book.running[subject] := coalesce(own.running, 0);
      book.concurrent[subject] := own.concurrent_requests;
      book.is_changed[subject] := false;
      book.starts_at := book.starts_at || coalesce(own.starts_at, array_fill(null::timestamptz, array[4]));
      book.ends_at := book.ends_at || coalesce(own.ends_at, array_fill(null::timestamptz, array[4]));
      book.used := book.used || coalesce(own.used, '{0,0,0,0}');
      book.held := book.held || coalesce(own.held, '{0,0,0,0}');
      -- No total beyond 2^53 - 1 could be read exactly.
      book.limits := book.limits || array[coalesce(own.session_units, 9007199254740991),
        coalesce(own.week_units, 9007199254740991), coalesce(own.month_units, 9007199254740991), null];
      continue when own.starts_at = starts;
      book := usage_roll(subject, starts, book.ends_at[4 * organization - 3:4 * organization], book);
    end loop;
  end $$;

-- The counters of a request, as 0004 says. Its chain names three others: the key, the person and the team. The hold of a
-- key that had several people while it ran may name more.
create or replace function usage_counters(owner integer, chain uuid[], ids uuid[]) returns integer[]
  language sql immutable
  as $$
    select case
      when chain is null then array[4 * owner - 3, 4 * owner - 2, 4 * owner - 1, 4 * owner]
      when cardinality(chain) > 3 then usage_chain_counters(owner, chain, ids)
      else array_remove(array[4 * owner - 3, 4 * owner - 2, 4 * owner - 1,
        4 * array_position(ids, chain[1]) - 3, 4 * array_position(ids, chain[1]) - 2, 4 * array_position(ids, chain[1]) - 1,
        4 * array_position(ids, chain[2]) - 3, 4 * array_position(ids, chain[2]) - 2, 4 * array_position(ids, chain[2]) - 1,
        4 * array_position(ids, chain[3]) - 3, 4 * array_position(ids, chain[3]) - 2, 4 * array_position(ids, chain[3]) - 1,
        4 * owner], null) end
  $$;

-- The subjects of a chain that have limits; null where none has.
create or replace function usage_limited(chain uuid[], ids uuid[]) returns uuid[]
  language sql immutable
  as $$
    select nullif(array_remove(array[case when chain[1] = any (ids) then chain[1] end,
      case when chain[2] = any (ids) then chain[2] end, case when chain[3] = any (ids) then chain[3] end], null), '{}')
  $$;

-- Admissions with what they count in, as 0004 says. The chain stands once, behind `offset 0`: what is asked of it several
-- times would else be worked out each time.
create or replace function usage_admissions(
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

-- As 0026 says.
create or replace function usage_admit(
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

create or replace function usage_write_holds(
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


drop function usage_subjects_answer(integer[], uuid[], bigint[], bigint[], usage_book);
