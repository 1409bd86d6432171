-- Raises: limits that count until an instant, on top of those of an organization's plan, a team, a person or a key
-- (docs/design/usage.md, Raises). The clock alone ends one: whoever reads limits adds the raises whose end is ahead of
-- the store's clock, and no job runs.

-- A raise of each subject at most; another one takes its place. Null raises nothing. One that ended stays until then.
create table limit_raise (
  subject_id uuid primary key,
  organization_id uuid not null references organization (id) on delete cascade,
  session_units bigint check (session_units >= 1),
  week_units bigint check (week_units >= 1),
  month_units bigint check (month_units >= 1),
  concurrent_requests bigint check (concurrent_requests >= 1),
  requests_per_minute bigint check (requests_per_minute >= 1),
  tokens_per_minute bigint check (tokens_per_minute >= 1),
  ends_at timestamptz not null,
  set_at timestamptz not null,
  set_by text not null
);
create index limit_raise_of_organization on limit_raise (organization_id);
create index limit_raise_by_end on limit_raise (ends_at);

-- The last end of a raise of the organization or of anybody in it: a batch looks for raises until then. It only rises.
alter table organization add column raised_until timestamptz;

-- A limit under a raise. A raise never lowers, and what is not limited stays so.
create function usage_raised(base bigint, raised bigint) returns bigint
  language sql immutable parallel safe
  as $$ select case when base < raised then raised else base end $$;

-- The raise of a subject that is in force.
create function usage_raise_of(subject uuid, at timestamptz) returns setof limit_raise
  language sql stable
  as $$ select * from limit_raise r where r.subject_id = subject and r.ends_at > at $$;

-- The state of a batch gets whether a raise may be in force, and those of its organizations' plans: of the three windows
-- and of requests at a time, four numbers for each organization; null: none is in force.
alter type usage_book add attribute is_raised boolean, add attribute raised bigint[];

-- Reads the state of organizations as 0003 does, and whether a raise may be in force.
create or replace function usage_load(organizations uuid[], clock timestamptz) returns usage_book
  language plpgsql volatile
  as $$
  declare
    book usage_book;
    now record;
  begin
    -- Put in order once, and not by each aggregate.
    select organizations, null, array_agg(i.generation), array_agg(coalesce(i.updates, 0)),
      array_agg(coalesce(i.running, 0)), null, array_agg(i.extra_usage_enabled), array_agg(i.has_subjects),
      array_agg(coalesce(i.ends_at[1] > clock and least(i.ends_at[2], i.ends_at[3]) > clock
        and greatest(i.starts_at[2], i.starts_at[3]) <= clock, false)),
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
    for owner in 1..cardinality(organizations) loop
      continue when book.is_open[owner];
      select w.* into now from usage_windows_at(organizations[owner], clock) w;
      book.is_open[owner] := now.is_open;
      book := usage_roll(owner, now.starts_at, now.ends_at, book);
    end loop;
    return book;
  end $$;

-- Puts the raises that are in force into the state of a batch and into its limits. A subject's own limits stand in the
-- state. Those of a plan come with the commands, and other organizations of the batch may be on the same plan: a raised
-- organization gets rows of its own behind them, which its commands then name.
create function usage_raise(
  clock timestamptz, inout admits usage_admit_command[], inout grows usage_grow_command[],
  inout settles usage_settle_command[], inout limits bigint[], inout book usage_book
)
  language plpgsql stable
  as $$
  declare
    step record;
    admit usage_admit_command;
    grow usage_grow_command;
    settle usage_settle_command;
    plans integer := coalesce(array_length(limits, 1), 0);
    -- By an organization's number: how far behind the plans its own rows begin.
    behind integer[] := array_fill(0, array[cardinality(book.extra_enabled)]);
  begin
    for step in
      select s.place::integer, array[r.session_units, r.week_units, r.month_units, r.concurrent_requests] as units
      from unnest(book.subjects) with ordinality s (id, place)
      cross join lateral (select * from limit_raise r where r.subject_id = s.id and r.ends_at > clock offset 0) r
    loop
      if step.place > cardinality(behind) then
        for k in 1..3 loop
          book.limits[4 * step.place - 4 + k] := usage_raised(book.limits[4 * step.place - 4 + k], step.units[k]);
        end loop;
        book.concurrent[step.place] := usage_raised(book.concurrent[step.place], step.units[4]);
        continue;
      end if;
      book.raised := coalesce(book.raised, array_fill(null::bigint, array[4 * cardinality(behind)]));
      book.raised[4 * step.place - 3:4 * step.place] := step.units;
      behind[step.place] := coalesce(array_length(limits, 1), 0);
      for n in 1..plans loop
        limits := limits || array[array[usage_raised(limits[n][1], step.units[1]),
          usage_raised(limits[n][2], step.units[2]), usage_raised(limits[n][3], step.units[3])]];
      end loop;
    end loop;
    if book.raised is null then
      return;
    end if;
    for n in 1..coalesce(cardinality(admits), 0) loop
      admit := admits[n];
      admit.plan := admit.plan + behind[admit.owner];
      admit.concurrent_limit := usage_raised(admit.concurrent_limit, book.raised[4 * admit.owner]);
      admits[n] := admit;
    end loop;
    for n in 1..coalesce(cardinality(grows), 0) loop
      grow := grows[n];
      grow.plan := grow.plan + behind[grow.owner];
      grows[n] := grow;
    end loop;
    for n in 1..coalesce(cardinality(settles), 0) loop
      settle := settles[n];
      settle.plan := settle.plan + behind[settle.owner];
      settles[n] := settle;
    end loop;
  end $$;

-- The windows of an organization as admissions see them, as 0004 says, and behind them the raise of its plan, where one is
-- in force.
create function usage_organization_answer(
  starts timestamptz[], ends timestamptz[], used bigint[], is_extra boolean, extra_cap bigint,
  raised bigint[]
)
  returns text
  language sql stable
  as $$
    select concat('[[', usage_ms(starts[1]), ',', usage_ms(starts[2]), ',', usage_ms(starts[3]), ',',
      usage_ms(ends[1]), ',', usage_ms(ends[2]), ',', usage_ms(ends[3]), '],[', array_to_string(used, ','), '],',
      is_extra::text, ',', coalesce(extra_cap::text, 'null'), ',' || array_to_json(raised)::text, ']')
  $$;

create or replace function usage_organizations_answer(book usage_book) returns text
  language plpgsql stable
  as $$
  declare
    answer text;
  begin
    for extra in 4..4 * cardinality(book.extra_enabled) by 4 loop
      answer := concat(answer || ',', case when book.extra_enabled[extra / 4] is null then 'null' else
        usage_organization_answer(book.starts_at[extra - 3:extra - 1], book.ends_at[extra - 3:extra - 1],
          book.used[extra - 3:extra], book.extra_enabled[extra / 4], book.limits[extra], book.raised[extra - 3:extra]) end);
    end loop;
    return answer;
  end $$;

create or replace function usage_granted_before(request uuid, owner integer, held bigint[], book usage_book) returns text
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

drop function usage_organization_answer(timestamptz[], timestamptz[], bigint[], boolean, bigint);

-- The batch, as 0004 says, under the raises in force.
create or replace function usage_batch(
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
      if book.is_raised then
        done := usage_raise(clock, admits, grows, settles, limits, book);
        admits := done.admits;
        grows := done.grows;
        settles := done.settles;
        limits := done.limits;
        book := done.book;
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

-- Recovery, as 0024 says, under the raises in force.
create or replace function usage_settle_lapsed(
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
    raised record;
  begin
    select array_agg(
        row(
          n, h.request_id, array_position(organizations, h.organization_id),
          null, null, null, null, null, null, null, null, n,
          h.input_tokens, h.cached_input_tokens, h.cache_write_tokens, h.produced_tokens, h.reasoning_tokens,
          h.usage_source,
          case when k.request_id is not null then 0 when charge_holds and h.stream then h.units
            else least(1000000000000000,
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
    left join lateral (select * from plan p where p.name = o.plan offset 0) p on true
    left join lateral (
      select c.request_id from kept_answer c where c.request_id = h.request_id and c.claim is not null offset 0
    ) k on true;
    if commands is null then
      return 0;
    end if;
    book := usage_load(organizations, clock);
    if true = any (book.has_subjects) then
      book := usage_load_subjects('{}', lapsed, book);
    end if;
    if book.is_raised then
      raised := usage_raise(clock, null, null, commands, limits, book);
      commands := raised.settles;
      limits := raised.limits;
      book := raised.book;
    end if;
    book := (usage_settle(commands, limits, true, clock, book)).book;
    perform usage_save(book);
    return cardinality(commands);
  end $$;

-- Late settlement, as 0028 says, under the raises in force.
create or replace function usage_settle_late(organizations uuid[], commands usage_settle_command[])
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
    raised record;
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
    if book.is_raised then
      raised := usage_raise(clock, null, null, late, limits, book);
      late := raised.settles;
      limits := raised.limits;
      book := raised.book;
    end if;
    book := (usage_settle(late, limits, false, clock, book)).book;
    perform usage_save(book);
    return query
      select l."position", r.request_id, r.charged, r.uncharged
      from unnest(late) l
      cross join lateral (select * from usage_record r where r.request_id = l.request_id offset 0) r;
  end $$;

-- The windows in force of each organization, for readers, with the raise of its plan.
create or replace view usage_window_now as
  select o.id as organization_id, w.kind, w.starts_at, w.ends_at, w.used, w.held,
    t.running, o.extra_usage_enabled as extra_enabled, o.extra_usage_cap_units as extra_cap_units, clock.at,
    case w.kind when 'session' then r.session_units when 'week' then r.week_units when 'month' then r.month_units end
      as raised_units,
    r.concurrent_requests as raised_requests
  from organization o
  cross join lateral (select store_now() as at offset 0) clock
  cross join lateral (select * from usage_windows_at(o.id, clock.at) offset 0) f
  cross join lateral (select * from usage_totals(o.id, f.starts_at) offset 0) t
  left join lateral (
    select * from limit_raise r where o.raised_until > clock.at and r.subject_id = o.id and r.ends_at > clock.at offset 0
  ) r on true
  cross join lateral unnest(enum_range(null::usage_window_kind), f.starts_at, f.ends_at, t.used, t.held)
    w (kind, starts_at, ends_at, used, held);
