-- Sliding rates where there is no Redis, or while it is away: what src/store/rates.ts says, for many nodes at once.
-- The tables are unlogged: they are about one minute, and every request writes to them. A crash of the server empties
-- them; then, as after requests that were counted elsewhere, the ledger's own rows say what was admitted.

create unlogged table usage_rate (
  organization_id uuid not null,
  -- A request's id, or the end of the second that several share.
  entry text collate "C" not null,
  counts_until timestamptz not null,
  requests bigint not null,
  tokens bigint not null,
  primary key (organization_id, entry)
) with (autovacuum_vacuum_scale_factor = 0.02);

-- When the ledger was last asked what was admitted.
create unlogged table usage_rate_reading (
  organization_id uuid primary key,
  read_at timestamptz not null
);

create type usage_rate_take as (
  position integer, organization_id uuid, request_id text, singly boolean,
  tokens bigint, tokens_min bigint,
  requests_limit bigint, tokens_limit bigint, elsewhere_ms bigint
);
-- What is added to an entry that still counts; less than nothing to take away.
create type usage_rate_change as (organization_id uuid, entry text, requests bigint, tokens bigint);
create type usage_rate_count as (
  position integer, taken boolean, entry text, tokens_taken bigint, requests bigint, tokens bigint,
  reset_ms bigint, requests_retry_ms bigint, tokens_retry_ms bigint
);

-- Counts what the ledger admitted within the last minute and nobody counted here. An operator's entry in the book is no
-- request, though one that adjusts a session has the session's boundaries, as requests that ran have. Ids sort by their
-- nodes' clocks: one that is slow by more than a minute is not looked for.
create function usage_rate_read(organization uuid, singly boolean, clock timestamptz) returns void
  language plpgsql volatile
  set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan
  as $$
  declare
    since timestamptz := clock - interval '60 seconds';
    oldest uuid := rpad(lpad(to_hex((extract(epoch from since - interval '60 seconds') * 1000)::bigint), 12, '0'), 32, '0');
  begin
    if not singly then
      -- Of a shared entry nobody knows whose requests it holds, so all of it is counted anew.
      delete from usage_rate where organization_id = organization;
    end if;
    insert into usage_rate (organization_id, entry, counts_until, requests, tokens)
    select organization, admitted.entry, admitted.counts_until, count(*), sum(admitted.tokens)
    from (
      select h.admitted_at, h.request_id, greatest(h.output_tokens, h.produced_tokens) + case when h.checkpoint > 0
        then h.input_tokens + h.cached_input_tokens + h.cache_write_tokens
        else coalesce((h.units - h.output_tokens * h.price_output)
          / nullif(greatest(h.price_input, h.price_cached_input, h.price_cache_write), 0), 0) end as tokens
      from usage_hold h
      where h.organization_id = organization and h.admitted_at > since
      union all
      select r.admitted_at, r.request_id,
        r.input_tokens + r.cached_input_tokens + r.cache_write_tokens + r.output_tokens
      from usage_record r
      where r.request_id >= oldest and r.organization_id = organization and r.admitted_at > since
        and r.session_starts_at is not null and r.operation <> 'adjustment'
    ) book
    cross join lateral (
      select 'req_' || replace(book.request_id::text, '-', ''), book.admitted_at + interval '60 seconds', book.tokens
      where singly
      union all
      select extract(epoch from date_trunc('second', book.admitted_at))::text,
        date_trunc('second', book.admitted_at) + interval '61 seconds', book.tokens
      where not singly
    ) admitted (entry, counts_until, tokens)
    group by 2, 3
    on conflict do nothing;
    insert into usage_rate_reading values (organization, clock)
    on conflict (organization_id) do update set read_at = excluded.read_at;
  end $$;

-- Changes first, then takes, organization by organization, each seeing those before it.
create function usage_rates(takes usage_rate_take[], changes usage_rate_change[]) returns setof usage_rate_count
  language plpgsql volatile
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set jit = off set plan_cache_mode = force_generic_plan
  as $$
  declare
    clock timestamptz;
    lock bigint;
    take usage_rate_take;
    owner uuid;
    read timestamptz;
    last_end timestamptz;
    used_requests bigint;
    used_tokens bigint;
    requests_over bigint;
    tokens_over bigint;
    from_at timestamptz;
    reply usage_rate_count;
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

    update usage_rate r set requests = r.requests + c.requests, tokens = greatest(0, r.tokens + c.tokens)
    from (
      select organization_id, entry, sum(requests)::bigint as requests, sum(tokens)::bigint as tokens
      from unnest(changes) group by 1, 2
    ) c
    where r.organization_id = c.organization_id and r.entry = c.entry;
    delete from usage_rate r using unnest(changes) c
    where r.organization_id = c.organization_id and r.entry = c.entry and r.requests <= 0;

    for take in select t.* from unnest(takes) t order by t.organization_id, t.position loop
      if owner is distinct from take.organization_id then
        owner := take.organization_id;
        delete from usage_rate where organization_id = owner and counts_until <= clock;
        select r.read_at into read from usage_rate_reading r where r.organization_id = owner;
        last_end := null;
      end if;
      if (take.elsewhere_ms is not null
          and coalesce(read < clock - take.elsewhere_ms * interval '1 millisecond', true))
        or (read is null and pg_postmaster_start_time() > clock_timestamp() - interval '60 seconds')
      then
        perform usage_rate_read(owner, take.singly, clock);
        read := clock;
        last_end := null;
      end if;
      if last_end is null then
        select coalesce(sum(requests), 0), coalesce(sum(tokens), 0), coalesce(max(counts_until), clock)
        into used_requests, used_tokens, last_end from usage_rate where organization_id = owner;
      end if;

      reply := null;
      reply.position := take.position;
      -- What it asks for, or what is left of it, or the least.
      take.tokens := greatest(take.tokens_min, least(take.tokens, take.tokens_limit - used_tokens));
      requests_over := coalesce(used_requests + 1 - take.requests_limit, 0);
      tokens_over := coalesce(used_tokens + take.tokens - take.tokens_limit, 0);
      reply.taken := requests_over <= 0 and tokens_over <= 0;
      reply.requests_retry_ms := 0;
      reply.tokens_retry_ms := 0;
      if reply.taken then
        from_at := case when take.singly then clock else date_trunc('second', clock) + interval '1 second' end;
        reply.entry := case when take.singly then take.request_id
          else extract(epoch from date_trunc('second', clock))::text end;
        insert into usage_rate values (owner, reply.entry, from_at + interval '60 seconds', 1, take.tokens)
        on conflict (organization_id, entry) do update
          set requests = usage_rate.requests + 1, tokens = usage_rate.tokens + excluded.tokens;
        reply.tokens_taken := take.tokens;
        used_requests := used_requests + 1;
        used_tokens := used_tokens + take.tokens;
        last_end := greatest(last_end, from_at + interval '60 seconds');
      else
        select
          extract(epoch from min(counts_until) filter (where freed_requests >= requests_over) - clock) * 1000,
          extract(epoch from min(counts_until) filter (where freed_tokens >= tokens_over) - clock) * 1000
        into reply.requests_retry_ms, reply.tokens_retry_ms
        from (
          select counts_until, sum(requests) over ends as freed_requests, sum(tokens) over ends as freed_tokens
          from usage_rate where organization_id = owner window ends as (order by counts_until)
        ) ending;
        reply.requests_retry_ms := case when requests_over <= 0 then 0 else reply.requests_retry_ms end;
        reply.tokens_retry_ms := case when tokens_over <= 0 then 0 else reply.tokens_retry_ms end;
      end if;
      reply.requests := used_requests;
      reply.tokens := used_tokens;
      reply.reset_ms := extract(epoch from last_end - clock) * 1000;
      return next reply;
    end loop;
  end $$;
