-- Sliding rates where there is no Redis, or while it is away: what src/store/rates.ts says, for many nodes at once.
-- The tables are unlogged: they are about one minute, and every request writes to them. A crash of the server empties
-- them; then, as after requests that were counted elsewhere, the ledger's own rows say what was admitted.

-- The end stands in the key: what has ended, and whose rows vacuum may not yet have removed, is not walked again.
create unlogged table usage_rate (
  organization_id uuid not null,
  counts_until timestamptz not null,
  -- A request's id, or the end of the second that several share.
  entry text collate "C" not null,
  requests bigint not null,
  tokens bigint not null,
  primary key (organization_id, counts_until, entry)
) with (autovacuum_vacuum_scale_factor = 0.02);

-- The sums of an organization's entries. Entries that ended by `swept_until` are gone. Of its rows one is live, and it is
-- written as that of `usage_now` is.
create unlogged table usage_rate_now (
  organization_id uuid not null,
  generation bigint not null,
  updates integer not null,
  requests bigint not null,
  tokens bigint not null,
  swept_until timestamptz not null,
  -- When the ledger was last asked what was admitted.
  read_at timestamptz,
  primary key (organization_id, generation)
) with (fillfactor = 50);

create type usage_rate_take as (
  position integer, organization_id uuid, request_id text, singly boolean,
  tokens bigint, tokens_min bigint,
  requests_limit bigint, tokens_limit bigint, elsewhere_ms bigint
);
-- What is added to an entry that still counts; less than nothing to take away.
create type usage_rate_change as (
  organization_id uuid, counts_until timestamptz, entry text, requests bigint, tokens bigint
);
create type usage_rate_count as (
  position integer, taken boolean, counts_until timestamptz, entry text, tokens_taken bigint, requests bigint, tokens bigint,
  reset_ms bigint, requests_retry_ms bigint, tokens_retry_ms bigint
);

-- Counts what the ledger admitted within the last minute and nobody counted here: of the organization, or of a subject that
-- is a key or a team of it. An operator's entry in the book is no request, though one that adjusts a session has the
-- session's boundaries, as requests that ran have. Ids sort by their nodes' clocks: one that is slow by more than a minute
-- is not looked for.
create function usage_rate_read(organization uuid, subject uuid, singly boolean, clock timestamptz) returns void
  language plpgsql volatile
  set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan
  as $$
  declare
    since timestamptz := clock - interval '60 seconds';
    oldest uuid := usage_record_id(since - interval '60 seconds');
  begin
    if not singly then
      -- Of a shared entry nobody knows whose requests it holds, so all of it is counted anew.
      delete from usage_rate where organization_id = subject and counts_until > clock;
    end if;
    insert into usage_rate (organization_id, counts_until, entry, requests, tokens)
    select subject, admitted.counts_until, admitted.entry, count(*), sum(admitted.tokens)
    from (
      select h.admitted_at, h.request_id, greatest(h.output_tokens, h.produced_tokens) + case when h.checkpoint > 0
        then h.input_tokens + h.cached_input_tokens + h.cache_write_tokens
        else coalesce((h.units - h.output_tokens * h.price_output)
          / nullif(greatest(h.price_input, h.price_cached_input, h.price_cache_write), 0), 0) end as tokens
      from usage_hold h
      where h.request_id >= oldest and h.organization_id = organization and h.admitted_at > since
        and (subject = organization or h.key_id = subject or h.team_id = subject)
      union all
      select r.admitted_at, r.request_id,
        r.input_tokens + r.cached_input_tokens + r.cache_write_tokens + r.output_tokens
      from usage_record r
      where r.request_id >= oldest and r.organization_id = organization and r.admitted_at > since
        and r.session_starts_at is not null and r.operation <> 'adjustment'
        and (subject = organization or r.key_id = subject or r.team_id = subject)
    ) book
    cross join lateral (
      select 'req_' || replace(book.request_id::text, '-', ''), book.admitted_at + interval '60 seconds', book.tokens
      where singly
      union all
      select extract(epoch from date_trunc('second', book.admitted_at))::text,
        date_trunc('second', book.admitted_at) + interval '61 seconds', book.tokens
      where not singly
    ) admitted (entry, counts_until, tokens)
    where admitted.entry not in (
      select r.entry from usage_rate r where r.organization_id = subject and r.counts_until > clock)
    group by 2, 3;
  end $$;

-- The sums of what still counts.
create function usage_rate_load(organization uuid, clock timestamptz) returns usage_rate_now
  language plpgsql volatile
  as $$
  declare
    now usage_rate_now;
    ended record;
  begin
    select * into now from usage_rate_now n where n.organization_id = organization order by n.generation desc limit 1;
    if not found then
      return row(organization, null, null, 0, 0, clock, null)::usage_rate_now;
    end if;
    with gone as (
      delete from usage_rate r
      where r.organization_id = organization and r.counts_until > now.swept_until and r.counts_until <= clock
      returning r.requests, r.tokens
    )
    select coalesce(sum(g.requests), 0) as requests, coalesce(sum(g.tokens), 0) as tokens into ended from gone g;
    now.requests := now.requests - ended.requests;
    now.tokens := now.tokens - ended.tokens;
    now.swept_until := clock;
    return now;
  end $$;

create function usage_rate_save(now usage_rate_now) returns void
  language plpgsql volatile
  as $$
  begin
    if now.updates < 32 then
      update usage_rate_now set updates = updates + 1, requests = now.requests, tokens = now.tokens,
        swept_until = now.swept_until, read_at = now.read_at
      where organization_id = now.organization_id and generation = now.generation;
    else
      insert into usage_rate_now values (now.organization_id, coalesce(now.generation, 0) + 1, 0,
        now.requests, now.tokens, now.swept_until, now.read_at);
      delete from usage_rate_now where organization_id = now.organization_id and generation = now.generation;
    end if;
  end $$;

-- Changes an entry that still counts; one without requests is none.
create function usage_rate_apply(change usage_rate_change, inout now usage_rate_now)
  language plpgsql volatile
  as $$
  declare
    entry usage_rate;
  begin
    select * into entry from usage_rate r
    where r.organization_id = now.organization_id and r.counts_until = change.counts_until and r.entry = change.entry;
    if not found then
      return;
    end if;
    change.tokens := greatest(change.tokens, -entry.tokens);
    if entry.requests + change.requests <= 0 then
      change.requests := -entry.requests;
      change.tokens := -entry.tokens;
      delete from usage_rate r
      where r.organization_id = now.organization_id and r.counts_until = change.counts_until and r.entry = change.entry;
    else
      update usage_rate r set requests = r.requests + change.requests, tokens = r.tokens + change.tokens
      where r.organization_id = now.organization_id and r.counts_until = change.counts_until and r.entry = change.entry;
    end if;
    now.requests := now.requests + change.requests;
    now.tokens := now.tokens + change.tokens;
  end $$;

-- Takes, or says when there is room.
create function usage_rate_decide(
  take usage_rate_take, clock timestamptz, inout last_end timestamptz, inout now usage_rate_now, out reply usage_rate_count
)
  language plpgsql volatile
  as $$
  declare
    requests_over bigint;
    tokens_over bigint;
    from_at timestamptz;
    ending record;
    until_ms bigint;
  begin
    reply.position := take.position;
    -- What it asks for, or what is left of it, or the least.
    take.tokens := greatest(take.tokens_min, least(take.tokens, take.tokens_limit - now.tokens));
    requests_over := coalesce(now.requests + 1 - take.requests_limit, 0);
    tokens_over := coalesce(now.tokens + take.tokens - take.tokens_limit, 0);
    reply.taken := requests_over <= 0 and tokens_over <= 0;
    reply.requests_retry_ms := 0;
    reply.tokens_retry_ms := 0;
    if reply.taken then
      from_at := case when take.singly then clock else date_trunc('second', clock) + interval '1 second' end;
      reply.counts_until := from_at + interval '60 seconds';
      reply.entry := case when take.singly then take.request_id
        else extract(epoch from date_trunc('second', clock))::text end;
      insert into usage_rate values (take.organization_id, reply.counts_until, reply.entry, 1, take.tokens)
      on conflict (organization_id, counts_until, entry) do update
        set requests = usage_rate.requests + 1, tokens = usage_rate.tokens + excluded.tokens;
      reply.tokens_taken := take.tokens;
      now.requests := now.requests + 1;
      now.tokens := now.tokens + take.tokens;
      last_end := greatest(last_end, reply.counts_until);
    else
      for ending in
        select r.counts_until, r.requests, r.tokens from usage_rate r
        where r.organization_id = take.organization_id and r.counts_until > clock order by r.counts_until
      loop
        exit when requests_over <= 0 and tokens_over <= 0;
        until_ms := extract(epoch from ending.counts_until - clock) * 1000;
        reply.requests_retry_ms := case when requests_over > 0 then until_ms else reply.requests_retry_ms end;
        reply.tokens_retry_ms := case when tokens_over > 0 then until_ms else reply.tokens_retry_ms end;
        requests_over := requests_over - ending.requests;
        tokens_over := tokens_over - ending.tokens;
      end loop;
      -- Not even when all have ended: nobody knows when.
      reply.requests_retry_ms := case when requests_over <= 0 then reply.requests_retry_ms end;
      reply.tokens_retry_ms := case when tokens_over <= 0 then reply.tokens_retry_ms end;
    end if;
    reply.requests := now.requests;
    reply.tokens := now.tokens;
    reply.reset_ms := extract(epoch from last_end - clock) * 1000;
  end $$;

-- Organization by organization: changes first, then takes, each seeing those before it.
create function usage_rates(takes usage_rate_take[], changes usage_rate_change[]) returns setof usage_rate_count
  language plpgsql volatile
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set jit = off set plan_cache_mode = force_generic_plan
  as $$
  declare
    clock timestamptz;
    lock bigint;
    step record;
    now usage_rate_now;
    last_end timestamptz;
    decision record;
  begin
    -- Of nobody: it asserts the isolation. The ledger's own lock is another, and nobody here waits for its batches.
    perform usage_lock('{}');
    for lock in
      select distinct uuid_hash_extended(id, 1)
      from (select organization_id from unnest(takes) union all select organization_id from unnest(changes)) named (id)
      order by 1
    loop
      perform pg_advisory_xact_lock(lock);
    end loop;
    clock := store_now();

    for step in
      select t.organization_id, t as take, null::usage_rate_change as change, t.position from unnest(takes) t
      union all
      select c.organization_id, null,
        row(c.organization_id, c.counts_until, c.entry, sum(c.requests), sum(c.tokens))::usage_rate_change, null
      from unnest(changes) c group by c.organization_id, c.counts_until, c.entry
      order by 1, 4 nulls first
    loop
      if now.organization_id is distinct from step.organization_id then
        if now.organization_id is not null then
          perform usage_rate_save(now);
        end if;
        now := usage_rate_load(step.organization_id, clock);
        last_end := null;
      end if;
      if step.position is null then
        now := usage_rate_apply(step.change, now);
        continue;
      end if;
      if ((step.take).elsewhere_ms is not null
          and coalesce(now.read_at < clock - (step.take).elsewhere_ms * interval '1 millisecond', true))
        or (now.read_at is null and pg_postmaster_start_time() > clock_timestamp() - interval '60 seconds')
      then
        perform usage_rate_read(now.organization_id, now.organization_id, (step.take).singly, clock);
        select coalesce(sum(r.requests), 0), coalesce(sum(r.tokens), 0) into now.requests, now.tokens
        from usage_rate r where r.organization_id = now.organization_id and r.counts_until > clock;
        now.read_at := clock;
        last_end := null;
      end if;
      if last_end is null then
        last_end := coalesce((
          select r.counts_until from usage_rate r where r.organization_id = now.organization_id and r.counts_until > clock
          order by r.counts_until desc limit 1), clock);
      end if;
      decision := usage_rate_decide(step.take, clock, last_end, now);
      now := decision.now;
      last_end := decision.last_end;
      return next decision.reply;
    end loop;
    if now.organization_id is not null then
      perform usage_rate_save(now);
    end if;
  end $$;
