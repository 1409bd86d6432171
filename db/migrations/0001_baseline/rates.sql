-- Sliding rates where there is no Redis, or while it is away: what src/core/store/rates.ts says, for many nodes at once. They
-- are of subjects: an organization, and keys and teams of it that are limited (docs/design/usage.md, Sliding limits). The
-- tables are unlogged: they are about one minute, and every request writes to them. A crash of the server empties them;
-- then, as after requests that were counted elsewhere, the ledger's own rows say what was admitted.

-- The end stands in the key: what has ended, and whose rows vacuum may not yet have removed, is not walked again.
create unlogged table usage_rate (
  subject_id uuid not null,
  counts_until timestamptz not null,
  -- A request's id, or the end of the second that several share.
  entry text collate "C" not null,
  requests bigint not null,
  tokens bigint not null,
  primary key (subject_id, counts_until, entry)
) with (autovacuum_vacuum_scale_factor = 0.02);

-- The sums of a subject's entries. Entries that ended by `swept_until` are gone. Of its rows one is live, and it is
-- written as that of `usage_now` is.
create unlogged table usage_rate_now (
  subject_id uuid not null,
  generation bigint not null,
  updates integer not null,
  requests bigint not null,
  tokens bigint not null,
  swept_until timestamptz not null,
  -- The instant at which the ledger was last asked for its admissions.
  read_at timestamptz,
  primary key (subject_id, generation)
) with (fillfactor = 50);

-- One subject of one request. Those of a request have its number, and stand in their order beside each other.
create type usage_rate_claim as (
  position integer, request integer, organization_id uuid, subject_id uuid, request_id text, singly boolean,
  tokens bigint, tokens_min bigint,
  requests_limit bigint, tokens_limit bigint, elsewhere_ms bigint
);

-- A correction of an entry that still counts. It is negative where the request took less.
create type usage_rate_correction as (
  organization_id uuid, subject_id uuid, counts_until timestamptz, entry text, requests bigint, tokens bigint
);
create type usage_rate_count as (
  position integer, taken boolean, counts_until timestamptz, entry text, tokens_taken bigint, requests bigint, tokens bigint,
  reset_ms bigint, requests_retry_ms bigint, tokens_retry_ms bigint
);

-- Counts what the ledger admitted within the last minute and nobody counted here: of the organization, or of another subject
-- of it. An operator's entry in the book is no request, though one that adjusts a session has the
-- session's boundaries, as requests that ran have. Ids sort by their nodes' clocks: one that is slow by more than a minute
-- is not looked for.
create function usage_rate_read(organization uuid, subject uuid, singly boolean, clock timestamptz) returns void
  language plpgsql volatile
  set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan
  as $$
  declare
    since timestamptz := clock - interval '60 seconds';
    oldest uuid := usage_record_id(since - interval '60 seconds');
    own usage_subject := (select s from usage_subject s where s.subject_id = subject);
    keys uuid[] := usage_keys_of(coalesce(own.parent_id, subject));
  begin
    if not singly then
      -- Nobody knows whose requests a shared entry holds, so all of it is counted anew.
      delete from usage_rate where subject_id = subject and counts_until > clock;
    end if;
    insert into usage_rate (subject_id, counts_until, entry, requests, tokens)
    select subject, admitted.counts_until, admitted.entry, count(*), sum(admitted.tokens)
    from (
      select h.admitted_at, h.request_id, greatest(h.output_tokens, h.produced_tokens) + case when h.checkpoint > 0
        then h.input_tokens + h.cached_input_tokens + h.cache_write_tokens
        else coalesce(1000 * (h.nanos - usage_cost(h.output_tokens, h.price_output))
          / nullif(greatest(h.price_input, h.price_cached_input, h.price_cache_write), 0), 0) end as tokens
      from usage_hold h
      where h.request_id >= oldest and h.organization_id = organization and h.admitted_at > since
        and (subject = organization or usage_counts_in(own, keys, h.key_id, h.team_id, h.model))
      union all
      select r.admitted_at, r.request_id,
        r.input_tokens + r.cached_input_tokens + r.cache_write_tokens + r.output_tokens
      from usage_record r
      where r.request_id >= oldest and r.organization_id = organization and r.admitted_at > since
        and r.session_starts_at is not null and r.operation <> 'adjustment'
        and (subject = organization or usage_counts_in(own, keys, r.key_id, r.team_id, r.model))
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
      select r.entry from usage_rate r where r.subject_id = subject and r.counts_until > clock)
    group by 2, 3;
  end $$;

-- The sums of what still counts.
create function usage_rate_load(subject uuid, clock timestamptz) returns usage_rate_now
  language plpgsql volatile
  as $$
  declare
    now usage_rate_now;
    ended record;
  begin
    select * into now from usage_rate_now n where n.subject_id = subject order by n.generation desc limit 1;
    if not found then
      return row(subject, null, null, 0, 0, clock, null)::usage_rate_now;
    end if;
    with gone as (
      delete from usage_rate r
      where r.subject_id = subject and r.counts_until > now.swept_until and r.counts_until <= clock
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
      where subject_id = now.subject_id and generation = now.generation;
    else
      insert into usage_rate_now values (now.subject_id, coalesce(now.generation, 0) + 1, 0,
        now.requests, now.tokens, now.swept_until, now.read_at);
      delete from usage_rate_now where subject_id = now.subject_id and generation = now.generation;
    end if;
  end $$;

-- Changes an entry that still counts; one without requests is none.
create function usage_rate_apply(correction usage_rate_correction, inout now usage_rate_now)
  language plpgsql volatile
  as $$
  declare
    entry usage_rate;
  begin
    select * into entry from usage_rate r
    where r.subject_id = now.subject_id and r.counts_until = correction.counts_until and r.entry = correction.entry;
    if not found then
      return;
    end if;
    correction.tokens := greatest(correction.tokens, -entry.tokens);
    if entry.requests + correction.requests <= 0 then
      correction.requests := -entry.requests;
      correction.tokens := -entry.tokens;
      delete from usage_rate r
      where r.subject_id = now.subject_id and r.counts_until = correction.counts_until and r.entry = correction.entry;
    else
      update usage_rate r set requests = r.requests + correction.requests, tokens = r.tokens + correction.tokens
      where r.subject_id = now.subject_id and r.counts_until = correction.counts_until and r.entry = correction.entry;
    end if;
    now.requests := now.requests + correction.requests;
    now.tokens := now.tokens + correction.tokens;
  end $$;

-- The sums as a claim meets them: with what was counted elsewhere, if that is unknown.
create function usage_rate_meet(
  claim usage_rate_claim, clock timestamptz, inout now usage_rate_now, inout last_end timestamptz
)
  language plpgsql volatile
  as $$
  begin
    if (claim.elsewhere_ms is not null
        and coalesce(now.read_at < clock - claim.elsewhere_ms * interval '1 millisecond', true))
      or (now.read_at is null and pg_postmaster_start_time() > clock_timestamp() - interval '60 seconds')
    then
      perform usage_rate_read(claim.organization_id, claim.subject_id, claim.singly, clock);
      select coalesce(sum(r.requests), 0), coalesce(sum(r.tokens), 0) into now.requests, now.tokens
      from usage_rate r where r.subject_id = claim.subject_id and r.counts_until > clock;
      now.read_at := clock;
      last_end := null;
    end if;
    if last_end is null then
      last_end := coalesce((
        select r.counts_until from usage_rate r where r.subject_id = claim.subject_id and r.counts_until > clock
        order by r.counts_until desc limit 1), clock);
    end if;
  end $$;

-- Counts a request that is taken. Of one that is not, says when this subject has room; one that has some need not wait.
create function usage_rate_answer(
  claim usage_rate_claim, tokens bigint, taken boolean, clock timestamptz,
  inout last_end timestamptz, inout now usage_rate_now, out reply usage_rate_count
)
  language plpgsql volatile
  as $$
  declare
    requests_over bigint := coalesce(now.requests + 1 - claim.requests_limit, 0);
    tokens_over bigint := coalesce(now.tokens + tokens - claim.tokens_limit, 0);
    from_at timestamptz;
    ending record;
    until_ms bigint;
  begin
    reply.position := claim.position;
    reply.taken := taken;
    reply.requests_retry_ms := 0;
    reply.tokens_retry_ms := 0;
    if taken then
      from_at := case when claim.singly then clock else date_trunc('second', clock) + interval '1 second' end;
      reply.counts_until := from_at + interval '60 seconds';
      reply.entry := case when claim.singly then claim.request_id
        else extract(epoch from date_trunc('second', clock))::text end;
      insert into usage_rate values (claim.subject_id, reply.counts_until, reply.entry, 1, tokens)
      on conflict (subject_id, counts_until, entry) do update
        set requests = usage_rate.requests + 1, tokens = usage_rate.tokens + excluded.tokens;
      reply.tokens_taken := tokens;
      now.requests := now.requests + 1;
      now.tokens := now.tokens + tokens;
      last_end := greatest(last_end, reply.counts_until);
    elsif requests_over > 0 or tokens_over > 0 then
      for ending in
        select r.counts_until, r.requests, r.tokens from usage_rate r
        where r.subject_id = claim.subject_id and r.counts_until > clock order by r.counts_until
      loop
        exit when requests_over <= 0 and tokens_over <= 0;
        until_ms := extract(epoch from ending.counts_until - clock) * 1000;
        reply.requests_retry_ms := case when requests_over > 0 then until_ms else reply.requests_retry_ms end;
        reply.tokens_retry_ms := case when tokens_over > 0 then until_ms else reply.tokens_retry_ms end;
        requests_over := requests_over - ending.requests;
        tokens_over := tokens_over - ending.tokens;
      end loop;
      -- The time is null where not even the end of all entries would make room: nobody knows when there will be any.
      reply.requests_retry_ms := case when requests_over <= 0 then reply.requests_retry_ms end;
      reply.tokens_retry_ms := case when tokens_over <= 0 then reply.tokens_retry_ms end;
    end if;
    reply.requests := now.requests;
    reply.tokens := now.tokens;
    reply.reset_ms := extract(epoch from last_end - clock) * 1000;
  end $$;

-- Locks organizations, in ascending order; answers the clock, read after the wait. The ledger's own lock is another: it is
-- taken of nobody here, to assert the isolation, and nobody waits for batches.
create function usage_rate_lock(organizations uuid[]) returns timestamptz
  language plpgsql volatile
  as $$
  begin
    perform usage_lock('{}');
    perform pg_advisory_xact_lock(lock)
    from (select distinct uuid_hash_extended(id, 1) as lock from unnest(organizations) id order by 1 offset 0) l;
    return store_now();
  end $$;

-- The steps of a call, organization by organization: its corrections, added up by entry, and then each request with its
-- claims.
create function usage_rate_steps(claims usage_rate_claim[], corrections usage_rate_correction[])
  returns table (
    organization_id uuid, request integer, subjects uuid[], claims usage_rate_claim[], corrections usage_rate_correction[]
  )
  language sql stable
  as $$
    select c.organization_id, c.request, array_agg(c.subject_id), array_agg(c order by c.position), null
    from unnest(claims) c group by 1, 2
    union all
    select c.organization_id, null, array_agg(c.subject_id), null, array_agg(
      row(c.organization_id, c.subject_id, c.counts_until, c.entry, c.requests, c.tokens)::usage_rate_correction)
    from (
      select k.organization_id, k.subject_id, k.counts_until, k.entry, sum(k.requests) as requests, sum(k.tokens) as tokens
      from unnest(corrections) k group by 1, 2, 3, 4
    ) c group by 1
    order by 1, 2 nulls first
  $$;

-- Organization by organization: corrections first, then request by request, each seeing those before it. A request is
-- counted for all of its subjects or for none. Answers a row for each claim.
create function usage_rates(claims usage_rate_claim[], corrections usage_rate_correction[])
  returns setof usage_rate_count
  language plpgsql volatile
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set jit = off set plan_cache_mode = force_generic_plan
  as $$
  declare
    clock timestamptz;
    organization uuid;
    subjects uuid[];
    subject uuid;
    states usage_rate_now[];
    last_ends timestamptz[];
    step record;
    claim usage_rate_claim;
    correction usage_rate_correction;
    tokens bigint;
    taken boolean;
    done record;
    n integer;
  begin
    clock := usage_rate_lock(array(
      select organization_id from unnest(claims) union all select organization_id from unnest(corrections)));
    for step in select * from usage_rate_steps(claims, corrections) loop
      if organization is distinct from step.organization_id then
        perform usage_rate_save(s) from unnest(states) s;
        organization := step.organization_id;
        subjects := '{}';
        states := '{}';
        last_ends := '{}';
      end if;
      foreach subject in array step.subjects loop
        continue when subject = any (subjects);
        subjects := subjects || subject;
        states[cardinality(subjects)] := usage_rate_load(subject, clock);
      end loop;

      if step.request is null then
        foreach correction in array step.corrections loop
          n := array_position(subjects, correction.subject_id);
          states[n] := usage_rate_apply(correction, states[n]);
        end loop;
        continue;
      end if;

      tokens := (step.claims[1]).tokens;
      foreach claim in array step.claims loop
        n := array_position(subjects, claim.subject_id);
        done := usage_rate_meet(claim, clock, states[n], last_ends[n]);
        states[n] := done.now;
        last_ends[n] := done.last_end;
        -- The claim gets the tokens that it asks for, or those that are left, or its least.
        tokens := greatest(claim.tokens_min, least(tokens, claim.tokens_limit - states[n].tokens));
      end loop;
      taken := true;
      foreach claim in array step.claims loop
        n := array_position(subjects, claim.subject_id);
        taken := taken and coalesce(states[n].requests < claim.requests_limit, true)
          and coalesce(states[n].tokens + tokens <= claim.tokens_limit, true);
      end loop;
      foreach claim in array step.claims loop
        n := array_position(subjects, claim.subject_id);
        done := usage_rate_answer(claim, tokens, taken, clock, last_ends[n], states[n]);
        states[n] := done.now;
        last_ends[n] := done.last_end;
        return next done.reply;
      end loop;
    end loop;
    perform usage_rate_save(s) from unnest(states) s;
  end $$;
