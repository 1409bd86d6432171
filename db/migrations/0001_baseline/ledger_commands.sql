-- The verbs of the ledger: src/core/store/ledger.ts says what commands and answers mean. Each verb is one function that
-- carries out all of a batch's commands of its kind, in their order; each command sees the effects of those before it.
-- `usage_batch` calls these functions, and reads and writes the state (`usage_book`) once. `limits` has a row for each
-- plan, with its limits in the order of window kinds; commands name a plan by the number of its row. Null does not limit,
-- and least() ignores nulls. Loops work on numbers in arrays, copied out of the state, and rows are written from arrays at
-- the end: in PL/pgSQL both cost far less than composites. Most of a statement's cost is its start, so there are few
-- statements.

-- The commands of a batch. `position` is the command's position, which its answer repeats; `owner` is the number of the
-- command's organization among those of the batch.
create type usage_admit_command as (
  position integer, request_id uuid, owner integer, key_id uuid, operation text, model text, stream boolean,
  price_input bigint, price_cached_input bigint, price_cache_write bigint, price_output bigint,
  price_search bigint, input_count integer,
  plan integer, concurrent_limit bigint,
  input_nanos bigint, output_tokens bigint, output_tokens_min bigint, lease_ms bigint, is_repeatable boolean, aliases text[]
);
create type usage_grow_command as (
  position integer, request_id uuid, owner integer, number integer,
  plan integer, nanos_total bigint, nanos_total_min bigint
);
create type usage_checkpoint_command as (
  position integer, request_id uuid, owner integer, number integer,
  input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
  reasoning_tokens bigint, usage_source text, lease_ms bigint
);
create type usage_settle_command as (
  position integer, request_id uuid, owner integer, key_id uuid, operation text, model text, stream boolean,
  price_input bigint, price_cached_input bigint, price_cache_write bigint, price_output bigint,
  price_search bigint, input_count integer,
  plan integer,
  input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
  reasoning_tokens bigint, usage_source text, searches integer,
  nanos bigint, outcome text, stopped_by jsonb, error_code text,
  upstream text, attempts integer, tried jsonb, first_part_ms bigint, report_rejected jsonb
);

-- Answers are JSON, each an array behind a comma: a row of columns for each would cost more than all decisions of a batch. An
-- answer has the command's position and a word. An admission's answer then has what the admission saw, unless the word is
-- `over` or `unknown`. At the end is what was granted or charged: nanos, and for an admission also its output tokens, its
-- source, and the team of its key. A refused admission has there the zone of its organization's calendar, if there is one; a
-- growth without room has the limits that leave none.
--
-- An admission saw the state just before it:
-- - Its organization, by its number in the batch. The batch's answer lists the organizations once: when the three windows
--   begin and end, what is used of the four kinds, whether there is extra usage, and its cap. An admission that was granted
--   before has this list of its organization in place of the number.
-- - The amounts that are held of the four kinds of windows.
-- - A row for each limited subject: the subject's number in the batch, what is held of its three windows, and how many of
--   its requests run. The first row of a subject in a batch goes on with what is the same for all admissions: its place in
--   the chain (0 for the key, 1 for the person, 2 for the team and 3 for the organization), its three limits and the
--   concurrent one, what is used of its three windows, and its pattern, if it limits models.

-- Milliseconds since 1970, of which the node makes an instant.
create function usage_ms(at timestamptz) returns bigint
  language sql stable
  as $$ select trunc(extract(epoch from at) * 1000)::bigint $$;

-- The JSON of an organization as admissions see it: its windows and its extra usage, then its own limits and its raise (a
-- temporary increase of limits), if it has either.
create function usage_organization_answer(
  starts timestamptz[], ends timestamptz[], used bigint[], is_extra boolean, extra_cap bigint,
  own bigint[], raised bigint[], wholes timestamptz[]
)
  returns text
  language sql stable
  as $$
    select concat('[[', usage_ms(starts[1]), ',', usage_ms(starts[2]), ',', usage_ms(starts[3]), ',',
      usage_ms(ends[1]), ',', usage_ms(ends[2]), ',', usage_ms(ends[3]), '],[', array_to_string(used, ','), '],',
      is_extra::text, ',', coalesce(extra_cap::text, 'null'),
      case when coalesce(own, raised) is not null or wholes is not null then
        concat(',', coalesce(array_to_json(own)::text, '[]'), ',', coalesce(array_to_json(raised)::text, '[]')) end,
      case when wholes is not null then concat(',[', coalesce(usage_ms(wholes[2])::text, 'null'), ',',
        coalesce(usage_ms(wholes[3])::text, 'null'), ']') end, ']')
  $$;

-- The JSON of a batch's organizations, in their order; null for one that does not exist, or is not among `asked`.
create function usage_organizations_answer(asked integer[], book usage_book) returns text
  language plpgsql stable
  as $$
  declare
    answer text;
  begin
    for extra in 4..4 * cardinality(book.extra_enabled) by 4 loop
      answer := concat(answer || ',', case when book.extra_enabled[extra / 4] is null or extra / 4 <> all (asked) then 'null' else
        usage_organization_answer(book.starts_at[extra - 3:extra - 1], book.ends_at[extra - 3:extra - 1],
          book.used[extra - 3:extra], book.extra_enabled[extra / 4], usage_in_proportion(book.limits[extra],
            book.starts_at[extra], book.ends_at[extra], book.wholes[extra]),
          book.own[extra - 3:extra], book.raised[extra - 3:extra], book.wholes[extra - 3:extra]) end);
    end loop;
    return answer;
  end $$;

-- The numbers of a request's subjects for a chain of any length, as `usage_numbers` returns them.
create function usage_numbers_of(owner integer, chain uuid[], ids uuid[]) returns integer[]
  language plpgsql immutable
  as $$
  declare
    numbers integer[] := array[owner];
    id uuid;
  begin
    foreach id in array chain loop
      numbers := numbers || array_position(ids, id);
    end loop;
    return array_remove(numbers, null);
  end $$;

-- The numbers of a request's subjects: its organization first, and then the others that are limited. `chain` names these:
-- the key, its person and its team, and for a hold also the subjects that limit models. The shortcut for chains of at most
-- three saves about 50 µs of the 4 to 6 ms that a batch of 32 admissions and their settlements takes, if no two neighbours
-- have the same subjects.
create function usage_numbers(owner integer, chain uuid[], ids uuid[]) returns integer[]
  language sql immutable
  as $$
    select case
      when chain is null then array[owner]
      when cardinality(chain) > 3 then usage_numbers_of(owner, chain, ids)
      else array_remove(array[owner, array_position(ids, chain[1]), array_position(ids, chain[2]),
        array_position(ids, chain[3])], null) end
  $$;

-- The counters of these subjects: for each counter, its index in the arrays of the state. First come the three windows of
-- the organization, then those of the other subjects, and last the organization's extra usage. So a request billed to the
-- plan counts in all but the last, and a request billed to extra usage in all from the fourth on.
create function usage_counters(subjects integer[]) returns integer[]
  language plpgsql immutable
  as $$
  declare
    counters integer[];
    n integer;
  begin
    foreach n in array subjects loop
      counters := counters || array[4 * n - 3, 4 * n - 2, 4 * n - 1];
    end loop;
    return counters || 4 * subjects[1];
  end $$;

-- The hold of a request, the subjects that it counts in besides its organization, and the counters in which it counts: of
-- all counters of these subjects (usage_counters), those from `first` on, except the last `spare`.
create function usage_hold_of(request uuid, owner integer, ids uuid[], starts timestamptz[])
  returns table (held bigint, growth integer, chain uuid[], first integer, spare integer, is_in_force boolean)
  language sql stable
  as $$
    select h.nanos, h.growth, h.subjects,
      case h.source when 'plan' then 1 else 4 end, case h.source when 'plan' then 1 else 0 end,
      h.session_starts_at = starts[4 * owner - 3] and h.week_starts_at = starts[4 * owner - 2]
        and h.month_starts_at = starts[4 * owner - 1]
    from usage_hold h where h.request_id = request and h.organization_id = ids[owner] offset 0
  $$;

-- The limits of an organization's windows in force: with its own limits and its raise applied, and reduced to a share for
-- windows that are shorter than others. A window without a limit takes at most 9007199254740991. `extra` is the index of the
-- organization's last counter.
create function usage_limits_in_force(
  limits bigint[], plan integer, extra integer, own bigint[], raised bigint[],
  starts timestamptz[], ends timestamptz[], wholes timestamptz[]
)
  returns bigint[]
  language plpgsql immutable
  as $$
  declare
    bounds bigint[];
    counter integer;
  begin
    for k in 1..3 loop
      counter := extra - 4 + k;
      bounds[k] := usage_in_proportion(coalesce(usage_own(limits[plan][k], own[counter], raised[counter]), 9007199254740991),
        starts[counter], ends[counter], wholes[counter]);
    end loop;
    return bounds;
  end $$;

-- The limits of an organization's windows: those of the plan that a command names or, if the organization has own limits, a
-- raise or shorter windows, the limits in force (usage_limits_in_force).
create function usage_plan_limits(
  limits bigint[], plan integer, extra integer, own bigint[], raised bigint[],
  starts timestamptz[], ends timestamptz[], wholes timestamptz[]
)
  returns bigint[]
  language sql immutable
  as $$
    select case when coalesce(own, raised) is null and wholes is null then limits[plan:plan]
      else usage_limits_in_force(limits, plan, extra, own, raised, starts, ends, wholes) end
  $$;

-- The limits of the past windows that a hold counts in. A past window may have been shorter than others, so each gets its
-- own share. `now` has the counters of the windows in force, and `counters` those of the windows in which the hold was admitted;
-- `bounds` has the limits of both.
create function usage_past_bounds(
  bounds bigint[], now integer[], counters integer[], limits bigint[], plan integer, extra integer, book usage_book
)
  returns bigint[]
  language plpgsql stable
  as $$
  declare
    whole bigint[] := book.limits;
    past usage_past;
  begin
    for k in 1..3 loop
      whole[extra - 4 + k] := coalesce(
        usage_own(limits[plan][k], book.own[extra - 4 + k], book.raised[extra - 4 + k]), 9007199254740991);
    end loop;
    for i in 1..cardinality(counters) loop
      continue when counters[i] = now[i];
      past := book.past[counters[i] - cardinality(book.starts_at)];
      bounds[counters[i]] := usage_in_proportion(whole[now[i]], past.starts_at, past.ends_at,
        usage_whole(book.subjects[extra / 4], past.kind, past.starts_at, past.ends_at));
    end loop;
    return bounds;
  end $$;

-- Adds the raises (temporary increases of limits) in force to the state of a batch. The limits of teams, people and keys
-- are in the state and are raised here. Those of an organization come with each command, so its raise is only stored here,
-- and applied with the command.
create function usage_raise(clock timestamptz, inout book usage_book)
  language plpgsql stable
  as $$
  declare
    step record;
    before integer;
  begin
    for step in
      select s.place::integer, array[r.session_nanos, r.week_nanos, r.month_nanos, r.concurrent_requests] as nanos
      from unnest(book.subjects) with ordinality s (id, place)
      cross join lateral (select * from usage_raise_of(s.id, clock) offset 0) r
    loop
      before := 4 * step.place - 4;
      if book.parents[step.place] is null then
        book.raised := coalesce(book.raised, array_fill(null::bigint, array[4 * cardinality(book.extra_enabled)]));
        book.raised[before + 1:before + 4] := step.nanos;
        continue;
      end if;
      for k in 1..3 loop
        book.limits[before + k] := usage_raised(book.limits[before + k], step.nanos[k]);
      end loop;
      book.concurrent[step.place] := usage_raised(book.concurrent[step.place], step.nanos[4]);
    end loop;
  end $$;

-- Extends leases, and records how far requests have come. Counts only rise, and a checkpoint that a later one has overtaken
-- changes none.
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
        -- Finds the row's place (ctid) by its key: if the update joined by the key itself, the planner would be free to
        -- read all rows.
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

-- Carries out the commands of one batch, under the raises (temporary increases of limits) in force: settlements first, then
-- growths of holds, then admissions, and checkpoints last. A request id may occur in a batch once. A refusal is an answer
-- and fails nothing. Returns as JSON the milliseconds of its clock, the microseconds that it waited for its locks, the
-- organizations of its admissions, and its answers. The settings make it use indexes: a plan made while its tables are
-- empty would otherwise read whole tables for as long as the plan is kept.
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
        book := usage_load_subjects(admits, '{}', array(
          select c.request_id from unnest(settles) c union all select c.request_id from unnest(grows) c), book);
      end if;
      if book.is_raised then
        book := usage_raise(clock, book);
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
        seen := usage_organizations_answer(array(select a.owner from unnest(admits) a), book);
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

-- Carries out a batch on a server, where `synchronous_commit` is off for the session. It commits the batch without waiting
-- for the disk, so that nobody waits for a disk while holding an organization's lock. Then it commits an empty message, and
-- this commit waits for the disk. The write-ahead log is ordered, so the batch is then on disk too. It is one statement,
-- and not two in a row, because each would be a round trip of its own between node and server.
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
