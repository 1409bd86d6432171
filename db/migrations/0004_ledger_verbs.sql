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

-- Answers are JSON, each an array behind a comma: a row of columns for each would cost more than all that is decided.
-- Position and word; then of an admission, but one that is `over` or `unknown`: when the three windows begin and end, all
-- four kinds' used and held units just before it, whether there is extra usage and its cap, and of the key and the team
-- that are limited: 0 for the key and 1 for the team, three limits and the concurrent one, what is used of the three windows
-- and held, and how many run. Last what was granted or charged: units, and of an admission its output tokens and source,
-- and the team that its key is in.

-- Milliseconds since 1970, of which the node makes an instant.
create function usage_ms(at timestamptz) returns bigint
  language sql stable
  as $$ select trunc(extract(epoch from at) * 1000)::bigint $$;

-- Of an owner's row.
create function usage_windows_answer(starts timestamptz[], ends timestamptz[], owner integer) returns text
  language sql stable
  as $$
    select concat('[', usage_ms(starts[owner][1]), ',', usage_ms(starts[owner][2]), ',', usage_ms(starts[owner][3]), ',',
      usage_ms(ends[owner][1]), ',', usage_ms(ends[owner][2]), ',', usage_ms(ends[owner][3]), ']')
  $$;

-- The places of a key that is limited, and of its team if that is; null: neither is, and nothing more is to be done.
create function usage_subjects_of(key uuid, book usage_book) returns integer[]
  language plpgsql immutable
  as $$
  declare
    entry integer := array_position(book.keys, key);
  begin
    if entry is null then
      return null;
    end if;
    return nullif(array_remove(array[array_position(book.organizations, key),
      array_position(book.organizations, book.teams[entry])], null), '{}');
  end $$;

-- The same, as ids.
create function usage_subject_ids(key uuid, book usage_book) returns uuid[]
  language plpgsql immutable
  as $$
  begin
    return (select array_agg(book.organizations[m] order by m) from unnest(usage_subjects_of(key, book)) m);
  end $$;

-- Where the windows of a hold's subjects stand: the places of the subjects, and for each the rows of three windows.
create function usage_spots(
  request uuid, subjects uuid[], is_in_force boolean,
  inout book usage_book, inout used bigint[], inout held bigint[], out mine integer[], out spots integer[]
)
  language plpgsql stable
  as $$
  declare
    subject uuid;
    place integer;
    location record;
  begin
    mine := '{}';
    spots := '{}';
    foreach subject in array subjects loop
      place := array_position(book.organizations, subject);
      mine := mine || place;
      if is_in_force then
        spots := spots || array[place, place, place];
      else
        location := usage_locate(request, place, book, used, held);
        book := location.book;
        used := location.used;
        held := location.held;
        spots := spots || location.places[1:3];
      end if;
    end loop;
  end $$;

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
    organizations uuid[] := book.organizations;
    starts timestamptz[] := book.starts_at;
    used bigint[] := book.used;
    held bigint[] := book.held;
    running bigint[] := book.running;
    is_changed boolean[] := book.is_changed;
    owner integer;
    place integer;
    places integer[];
    location record;
    -- The places of the limited key and team: `mine`, and for each of them three of `spots`.
    mine integer[];
    subject integer;
    spots integer[];
    spot integer;
    kind integer;
    first integer;
    last integer;
    unused bigint;
    room bigint;
    -- Of each command; null: it has a record already.
    charges bigint[] := array_fill(null::bigint, array[cardinality(commands)]);
    after bigint[] := array_fill(null::bigint, array[cardinality(commands), 3]);
    ended uuid[] := '{}';
  begin
    for step in
      select c.ordinality as n, c.position, c.request_id, c.owner, c.plan, c.units, h.units as held, h.source, h.subjects,
        h.session_starts_at = starts[c.owner][1] and h.week_starts_at = starts[c.owner][2]
          and h.month_starts_at = starts[c.owner][3] as is_in_force
      from unnest(commands) with ordinality c
      left join lateral (
        select * from usage_hold h where h.request_id = c.request_id and h.organization_id = organizations[c.owner] offset 0
      ) h on true
    loop
      if step.held is null then
        -- A request never has a hold and a record: where its hold is gone, so may be what it was to do.
        if exists (select from usage_record r where r.request_id = step.request_id) then
          answers := concat(answers, ',[', step.position, ',"already"]');
        else
          charges[step.n] := 0;
          answers := concat(answers, ',[', step.position, ',"settled",0]');
        end if;
        continue;
      end if;
      owner := step.owner;
      if step.is_in_force then
        places := array[owner, owner, owner, owner];
      else
        location := usage_locate(step.request_id, owner, book, used, held);
        book := location.book;
        used := location.used;
        held := location.held;
        places := location.places;
      end if;
      spots := '{}';
      if step.subjects is not null then
        location := usage_spots(step.request_id, step.subjects, step.is_in_force, book, used, held);
        book := location.book;
        used := location.used;
        held := location.held;
        mine := location.mine;
        spots := location.spots;
      end if;
      if step.source = 'plan' then
        first := 1;
        last := 3;
      else
        first := 4;
        last := 4;
      end if;

      -- What every limit leaves, without what others hold; but what was granted is not taken back for their holds where
      -- a limit was lowered meanwhile.
      room := step.units;
      for kind in first..last loop
        place := places[kind];
        unused := case kind when 4 then book.extra_caps[owner] else limits[step.plan][kind] end - used[place][kind];
        room := least(room, unused - greatest(0, least(held[place][kind], unused) - step.held));
      end loop;
      for n in 1..cardinality(spots) loop
        spot := spots[n];
        kind := (n - 1) % 3 + 1;
        unused := book.limits[mine[(n + 2) / 3]][kind] - used[spot][kind];
        room := least(room, unused - greatest(0, least(held[spot][kind], unused) - step.held));
      end loop;
      room := greatest(0, room);
      for n in 1..cardinality(spots) loop
        spot := spots[n];
        kind := (n - 1) % 3 + 1;
        used[spot][kind] := used[spot][kind] + room;
        held[spot][kind] := held[spot][kind] - step.held;
      end loop;
      for n in 1..cardinality(spots) / 3 loop
        subject := mine[n];
        running[subject] := running[subject] - 1;
        is_changed[subject] := true;
      end loop;
      for kind in first..last loop
        place := places[kind];
        used[place][kind] := used[place][kind] + room;
        held[place][kind] := held[place][kind] - step.held;
      end loop;
      charges[step.n] := room;
      answers := concat(answers, ',[', step.position, ',"settled",', room, ']');
      for kind in 1..3 loop
        after[step.n][kind] := used[places[kind]][kind];
      end loop;
      ended := ended || step.request_id;
      running[owner] := running[owner] - 1;
      is_changed[owner] := true;
    end loop;
    book.used := used;
    book.held := held;
    book.running := running;
    book.is_changed := is_changed;

    with gone as (delete from usage_hold where request_id = any (ended))
    insert into usage_record
    select c.request_id, organizations[c.owner], coalesce(h.key_id, c.key_id), coalesce(h.operation, c.operation),
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
      select * from usage_hold h where h.request_id = c.request_id and h.organization_id = organizations[c.owner] offset 0
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
    organizations uuid[] := book.organizations;
    starts timestamptz[] := book.starts_at;
    used bigint[] := book.used;
    held bigint[] := book.held;
    owner integer;
    place integer;
    places integer[];
    location record;
    -- As in a settlement.
    mine integer[];
    spots integer[];
    spot integer;
    kind integer;
    first integer;
    last integer;
    room bigint;
    granted bigint;
    grown uuid[] := '{}';
    grown_units bigint[] := '{}';
    grown_numbers integer[] := '{}';
  begin
    for step in
      select c.position, c.request_id, c.owner, c.number, c.plan, c.units_total, c.units_total_min, h.units as held,
        h.growth, h.source, h.subjects, h.session_starts_at = starts[c.owner][1] and h.week_starts_at = starts[c.owner][2]
          and h.month_starts_at = starts[c.owner][3] as is_in_force
      from unnest(commands) c
      left join lateral (
        select * from usage_hold h where h.request_id = c.request_id and h.organization_id = organizations[c.owner] offset 0
      ) h on true
    loop
      if step.held is null then
        answers := concat(answers, ',[', step.position, ',"gone"]');
        continue;
      end if;
      owner := step.owner;
      if step.is_in_force then
        places := array[owner, owner, owner, owner];
      else
        location := usage_locate(step.request_id, owner, book, used, held);
        book := location.book;
        used := location.used;
        held := location.held;
        places := location.places;
      end if;
      spots := '{}';
      if step.subjects is not null then
        location := usage_spots(step.request_id, step.subjects, step.is_in_force, book, used, held);
        book := location.book;
        used := location.used;
        held := location.held;
        mine := location.mine;
        spots := location.spots;
      end if;
      if step.source = 'plan' then
        first := 1;
        last := 3;
        room := null;
      else
        first := 4;
        last := 4;
        room := case when not book.extra_enabled[owner] then 0 end;
      end if;

      for kind in first..last loop
        place := places[kind];
        room := least(room, case kind when 4 then book.extra_caps[owner] else limits[step.plan][kind] end
          - used[place][kind] - held[place][kind]);
      end loop;
      for n in 1..cardinality(spots) loop
        spot := spots[n];
        kind := (n - 1) % 3 + 1;
        room := least(room, book.limits[mine[(n + 2) / 3]][kind] - used[spot][kind] - held[spot][kind]);
      end loop;
      -- Where a plan was lowered there is less than no room, and what is held beyond the least is given back: but not by a
      -- command that comes twice or was overtaken, since its node forwards by what it was answered.
      granted := greatest(
        case when step.number > step.growth then least(step.units_total_min, step.held) else step.held end,
        least(greatest(step.units_total, step.held), step.held + room));
      if granted < step.units_total_min then
        answers := concat(answers, ',[', step.position, ',"full"]');
        continue;
      end if;
      if granted <> step.held then
        for kind in first..last loop
          place := places[kind];
          held[place][kind] := held[place][kind] + granted - step.held;
        end loop;
        for n in 1..cardinality(spots) loop
          spot := spots[n];
          kind := (n - 1) % 3 + 1;
          held[spot][kind] := held[spot][kind] + granted - step.held;
          book.is_changed[mine[(n + 2) / 3]] := true;
        end loop;
        book.is_changed[owner] := true;
      end if;
      grown := grown || step.request_id;
      grown_units := grown_units || granted;
      grown_numbers := grown_numbers || greatest(step.number, step.growth);
      answers := concat(answers, ',[', step.position, ',"granted",', granted, ']');
    end loop;
    book.used := used;
    book.held := held;

    update usage_hold set units = grown_units[array_position(grown, request_id)],
      growth = grown_numbers[array_position(grown, request_id)]
    where request_id = any (grown);
  end $$;

-- The answer to an admission that was granted before. Its own hold is no part of what it saw.
create function usage_granted_before("position" integer, request uuid, owner integer, book usage_book) returns text
  language plpgsql stable
  as $$
  declare
    hold usage_hold := (select h from usage_hold h where h.request_id = request);
    at record := usage_locate(request, owner, book, book.used, book.held);
    own bigint := case hold.source when 'plan' then hold.units else 0 end;
    windows text := usage_windows_answer(array[[hold.session_starts_at, hold.week_starts_at, hold.month_starts_at]],
      array[[hold.session_ends_at, hold.week_ends_at, hold.month_ends_at]], 1);
  begin
    return concat(',[', "position", ',"granted",', windows,
      ',[', hold.session_used, ',', hold.week_used, ',', hold.month_used, ',', at.used[at.places[4]][4],
      '],[', at.held[at.places[1]][1] - own, ',', at.held[at.places[2]][2] - own, ',', at.held[at.places[3]][3] - own, ',',
      at.held[at.places[4]][4], '],', book.extra_enabled[owner]::text, ',', coalesce(book.extra_caps[owner]::text, 'null'),
      ',null,', hold.units, ',', hold.output_tokens, ',"', hold.source, '"', ',"' || hold.team_id || '"', ']');
  end $$;

-- Holds what a request may use: in the plan's windows or, where they are full, as extra usage.
create function usage_admit(
  commands usage_admit_command[], limits bigint[], clock timestamptz, inout book usage_book, out answers text
)
  language plpgsql volatile
  as $$
  declare
    step record;
    organizations uuid[] := book.organizations;
    starts timestamptz[] := book.starts_at;
    ends timestamptz[] := book.ends_at;
    used bigint[] := book.used;
    held bigint[] := book.held;
    running bigint[] := book.running;
    is_changed boolean[] := book.is_changed;
    requests uuid[] := array(select c.request_id from unnest(commands) c order by 1);
    -- Those that have a record. The span is there for the planner, who would look into every month for the ids alone.
    over uuid[] := array(
      select r.request_id from usage_record r where r.request_id = any (requests)
        and r.request_id >= requests[1] and r.request_id <= requests[cardinality(requests)]);
    owner integer;
    -- Of each organization, once.
    windows text[];
    units_whole bigint;
    units_least bigint;
    room bigint;
    room_extra bigint;
    -- The places of the limited key and team, and of what they may use: all, and without what is held for the moment.
    mine integer[];
    subject integer;
    readings bigint[];
    room_own bigint;
    unused_own bigint;
    is_crowded boolean;
    billed usage_billing;
    units bigint;
    tokens bigint;
    answer text;
    -- Of each command; null: nothing is held.
    bills usage_billing[] := array_fill(null::usage_billing, array[cardinality(commands)]);
    holds bigint[] := array_fill(null::bigint, array[cardinality(commands), 5]);
  begin
    for step in
      select c.ordinality as n, c.position, c.request_id, c.owner, c.key_id, c.plan, c.concurrent_limit, c.price_output,
        c.input_units, c.output_tokens, c.output_tokens_min, c.request_id = any (over) as is_over, h.units as held
      from unnest(commands) with ordinality c
      left join lateral (
        select * from usage_hold h where h.request_id = c.request_id and h.organization_id = organizations[c.owner] offset 0
      ) h on true
    loop
      owner := step.owner;
      if step.is_over or book.extra_enabled[owner] is null then
        answers := concat(answers, ',[', step.position, ',"', case when step.is_over then 'over' else 'unknown' end, '"]');
        continue;
      end if;
      if step.held is not null then
        -- Granted before; that answer was lost.
        book.used := used;
        book.held := held;
        answers := concat(answers, usage_granted_before(step.position, step.request_id, owner, book));
        continue;
      end if;

      units_whole := step.input_units + step.output_tokens * step.price_output;
      units_least := step.input_units + step.output_tokens_min * step.price_output;
      -- A room of null is without bounds.
      room := null;
      for kind in 1..3 loop
        room := least(room, limits[step.plan][kind] - used[owner][kind] - held[owner][kind]);
      end loop;
      room_extra := book.extra_caps[owner] - used[owner][4] - held[owner][4];
      room_own := null;
      unused_own := null;
      is_crowded := false;
      readings := null;
      mine := null;
      if book.keys is not null then
        mine := usage_subjects_of(step.key_id, book);
      end if;
      if mine is not null then
        foreach subject in array mine loop
          for kind in 1..3 loop
            unused_own := least(unused_own, book.limits[subject][kind] - used[subject][kind]);
            room_own := least(room_own, book.limits[subject][kind] - used[subject][kind] - held[subject][kind]);
          end loop;
          is_crowded := is_crowded or coalesce(running[subject] >= book.concurrent[subject], false);
          readings := readings || array[[case when book.organizations[subject] = step.key_id then 0 else 1 end,
            book.limits[subject][1], book.limits[subject][2], book.limits[subject][3], book.concurrent[subject],
            used[subject][1], used[subject][2], used[subject][3],
            held[subject][1], held[subject][2], held[subject][3], running[subject]]];
        end loop;
        -- Extra usage relieves the organization alone.
        room := least(room, room_own);
        room_extra := least(room_extra, room_own);
      end if;
      billed := case
        when coalesce(units_whole <= room, true) then 'plan'::usage_billing
        when book.extra_enabled[owner] and coalesce(units_whole <= room_extra, true) then 'extra'
        when units_least <= room then 'plan'
        when book.extra_enabled[owner] and units_least <= room_extra then 'extra' end;
      if billed is null or is_crowded or running[owner] >= step.concurrent_limit then
        answer := case
          when billed is not null then 'concurrency'
          -- Full of settled use, or only of what others hold for the moment, the extra usage included?
          when coalesce(units_least <= least(limits[step.plan][1] - used[owner][1],
            limits[step.plan][2] - used[owner][2], limits[step.plan][3] - used[owner][3], unused_own), true) then 'reserved'
          when book.extra_enabled[owner] and units_least <= least(book.extra_caps[owner] - used[owner][4], unused_own)
            then 'reserved'
          else 'exhausted' end;
        units := null;
        tokens := null;
        billed := null;
      else
        answer := 'granted';
        room := case billed when 'plan' then room else room_extra end;
        tokens := case when coalesce(units_whole <= room, true) then step.output_tokens
          else (room - step.input_units) / step.price_output end;
        units := step.input_units + tokens * step.price_output;
      end if;
      if windows[owner] is null then
        windows[owner] := usage_windows_answer(starts, ends, owner);
      end if;
      answers := concat(answers, ',[', step.position, ',"', answer, '",', windows[owner],
        ',[', array_to_string(used[owner:owner], ','), '],[', array_to_string(held[owner:owner], ','), '],',
        book.extra_enabled[owner]::text, ',', coalesce(book.extra_caps[owner]::text, 'null'), ',',
        coalesce(array_to_json(readings)::text, 'null'),
        case when billed is not null then concat(',', units, ',', tokens, ',"', billed, '"',
          ',"' || book.teams[array_position(book.keys, step.key_id)] || '"') end, ']');
      continue when billed is null;

      bills[step.n] := billed;
      holds[step.n][1] := units;
      holds[step.n][2] := tokens;
      for kind in 1..3 loop
        holds[step.n][2 + kind] := used[owner][kind];
      end loop;
      for kind in case billed when 'plan' then 1 else 4 end..case billed when 'plan' then 3 else 4 end loop
        held[owner][kind] := held[owner][kind] + units;
      end loop;
      running[owner] := running[owner] + 1;
      is_changed[owner] := true;
      if mine is not null then
        foreach subject in array mine loop
          for kind in 1..3 loop
            held[subject][kind] := held[subject][kind] + units;
          end loop;
          running[subject] := running[subject] + 1;
          is_changed[subject] := true;
        end loop;
      end if;
      if not book.is_open[owner] then
        book.is_open[owner] := true;
      end if;
    end loop;
    book.held := held;
    book.running := running;
    book.is_changed := is_changed;

    insert into usage_hold
    select c.request_id, organizations[c.owner], c.key_id, c.operation, c.model, c.stream,
      c.price_input, c.price_cached_input, c.price_cache_write, c.price_output,
      bills[c.n], holds[c.n][1], holds[c.n][2], clock, clock + c.lease_ms * interval '1 millisecond',
      starts[c.owner][1], ends[c.owner][1], limits[c.plan][1], holds[c.n][3],
      starts[c.owner][2], ends[c.owner][2], limits[c.plan][2], holds[c.n][4],
      starts[c.owner][3], ends[c.owner][3], limits[c.plan][3], holds[c.n][5],
      0, 0, 0, 0, 0, 0, 0, 'counted', book.teams[array_position(book.keys, c.key_id)],
      case when book.keys is not null then usage_subject_ids(c.key_id, book) end, c.lease_ms
    from (select c.*, c.ordinality as n from unnest(commands) with ordinality c) c
    where bills[c.n] is not null;
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
-- answer and fails nothing. Answers the milliseconds of its clock, the microseconds that it waited for its locks, and its
-- answers, as JSON. The settings keep it on the indexes: planned while its tables are empty, it would read them whole ever
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
    answers text := concat('[', usage_ms(clock), ',', (date_part('epoch', clock_timestamp() - began) * 1000000)::bigint);
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
        answers := answers || done.answers;
      end if;
      if cardinality(grows) > 0 then
        done := usage_grow(grows, limits, book);
        book := done.book;
        answers := answers || done.answers;
      end if;
      if cardinality(admits) > 0 then
        done := usage_admit(admits, limits, clock, book);
        book := done.book;
        answers := answers || done.answers;
      end if;
      perform usage_save(book);
    end if;
    if cardinality(checkpoints) > 0 then
      answers := answers || usage_checkpoint(checkpoints, organizations, clock);
    end if;
    return answers || ']';
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

-- Settles requests whose lease has lapsed, the longest gone first, at their last checkpoint or, with `charge_holds`, streams
-- as if all that was held had been used, under the limits in force; answers how many. What nobody streamed was not delivered,
-- and its checkpoints say so. Any node may do it; the lease is looked at
-- again under the lock. A clock that is not between `clock_min` and `clock_max` was set, forward or back (and it may have
-- gone back and forward again since the last sweep): then no lease has lapsed by it. Dead rows are not read again and again:
-- looked at are the requests that the last sweep has `seen` running, by their keys, and those whose ids begin at `since`,
-- where it is not null; for the next sweep it answers both, and its clock. A node whose clock is slow by more than a minute
-- makes ids that only a sweep of all finds. A lease that lies further ahead than it can was given by a clock that was set
-- back since: from now on it has its length, which its node counts from earlier on.
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
    limits bigint[];
    organizations uuid[];
    commands usage_settle_command[];
    book usage_book;
  begin
    clock := store_now();
    since := coalesce(since, '00000000-0000-0000-0000-000000000000');
    with live as materialized (
      select h.* from unnest(seen) s (request_id) cross join lateral (
        select * from usage_hold h where h.request_id = s.request_id and h.request_id < since offset 0
      ) h
      union all
      select h.* from usage_hold h where h.request_id >= since
    ), gone as (
      select * from live where lease_until <= clock order by lease_until limit most
    )
    select array(select request_id from live order by request_id limit 1001),
      (select request_id from live order by request_id desc limit 1),
      array(select request_id from live where lease_until > clock + (lease_ms + 1000) * interval '1 millisecond'),
      array_agg(g.request_id order by g.lease_until),
      array_agg(case when p.name is null then array[g.session_limit, g.week_limit, g.month_limit]
        else array[p.session_units, p.week_units, p.month_units] end order by g.lease_until),
      array_agg(distinct g.organization_id order by g.organization_id)
    into seen, newest, far, lapsed, limits, organizations
    from gone g
    left join lateral (select o.plan from organization o where o.id = g.organization_id offset 0) o on true
    left join lateral (select * from plan p where p.name = o.plan offset 0) p on true;
    -- By the clock that is slower, the store's or that of the node which made the newest; where nothing runs, as it was.
    since := case when newest is null then since else least(seen[1001],
      usage_record_id(least(clock, usage_record_time(newest)) - interval '1 minute')) end;
    if cardinality(far) > 0 then
      -- Whoever is extended at this moment waits for the next sweep: nobody waits for two rows here.
      far := array(select h.request_id from usage_hold h where h.request_id = any (far) for no key update skip locked);
      update usage_hold h set lease_until = clock + h.lease_ms * interval '1 millisecond'
      where h.request_id = any (far) and h.lease_until > clock + (h.lease_ms + 1000) * interval '1 millisecond';
    end if;
    settled := 0;
    if lapsed is null then
      return;
    end if;

    -- Before the lock: for requests of a node whose clock is far off.
    perform usage_partition(request_id) from unnest(lapsed) request_id;
    clock := usage_lock(organizations);
    commands := array(
      select row(
        array_position(lapsed, h.request_id), h.request_id, array_position(organizations, h.organization_id),
        null, null, null, null, null, null, null, null, array_position(lapsed, h.request_id),
        h.input_tokens, h.cached_input_tokens, h.cache_write_tokens, h.produced_tokens, h.reasoning_tokens,
        h.usage_source,
        case when charge_holds and h.stream then h.units else least(1000000000000000,
          h.input_tokens * h.price_input + h.cached_input_tokens * h.price_cached_input
          + h.cache_write_tokens * h.price_cache_write + h.produced_tokens * h.price_output) end,
        'failed', null, 'internal_error', null, null, null, null, null
      )::usage_settle_command
      from usage_hold h where h.request_id = any (lapsed) and h.lease_until <= clock
        and coalesce(clock >= clock_min, true) and coalesce(clock <= clock_max, true));
    book := usage_load(organizations, clock);
    if true = any (book.has_subjects) then
      book := usage_load_subjects('{}', lapsed, book);
    end if;
    book := (usage_settle(commands, limits, true, clock, book)).book;
    perform usage_save(book);
    settled := cardinality(commands);
  end $$;
