-- Requests and tokens a minute of keys and teams, beside those of their organization (docs/design/usage.md, Sliding limits).
-- A request is counted for all of them or for none. In `usage_rate` and `usage_rate_now` a key or a team stands in the
-- place of an organization; all are under their organization's lock, which nodes of before take, too.

alter table usage_subject
  add column requests_per_minute bigint check (requests_per_minute >= 1),
  add column tokens_per_minute bigint check (tokens_per_minute >= 1);
alter table key_default
  add column requests_per_minute bigint check (requests_per_minute >= 1),
  add column tokens_per_minute bigint check (tokens_per_minute >= 1);

-- One subject of one request. Those of a request have its number, and stand in their order beside each other.
create type usage_rate_claim as (
  position integer, request integer, organization_id uuid, subject_id uuid, request_id text, singly boolean,
  tokens bigint, tokens_min bigint,
  requests_limit bigint, tokens_limit bigint, elsewhere_ms bigint
);
create type usage_rate_correction as (
  organization_id uuid, subject_id uuid, counts_until timestamptz, entry text, requests bigint, tokens bigint
);

-- The state of a subject as a claim meets it: loaded once a call, and with what was counted elsewhere if that is unknown.
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
      from usage_rate r where r.organization_id = claim.subject_id and r.counts_until > clock;
      now.read_at := clock;
      last_end := null;
    end if;
    if last_end is null then
      last_end := coalesce((
        select r.counts_until from usage_rate r where r.organization_id = claim.subject_id and r.counts_until > clock
        order by r.counts_until desc limit 1), clock);
    end if;
  end $$;

-- Organization by organization: corrections first, then request by request, each seeing those before it. Answers a row for
-- each claim.
create function usage_rates_of(claims usage_rate_claim[], corrections usage_rate_correction[])
  returns setof usage_rate_count
  language plpgsql volatile
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set jit = off set plan_cache_mode = force_generic_plan
  as $$
  declare
    clock timestamptz;
    lock bigint;
    organization uuid;
    subjects uuid[];
    states usage_rate_now[];
    last_ends timestamptz[];
    step record;
    claim usage_rate_claim;
    correction usage_rate_correction;
    met record;
    tokens bigint;
    taken boolean;
    decision record;
    reply usage_rate_count;
    n integer;
  begin
    -- Of nobody: it asserts the isolation. The ledger's own lock is another, and nobody here waits for its batches.
    perform usage_lock('{}');
    for lock in
      select distinct uuid_hash_extended(id, 1)
      from (select organization_id from unnest(claims) union all select organization_id from unnest(corrections)) named (id)
      order by 1
    loop
      perform pg_advisory_xact_lock(lock);
    end loop;
    clock := store_now();

    for step in
      select c.organization_id, c.request, array_agg(c order by c.position) as claims, null::usage_rate_correction[] as corrections
      from unnest(claims) c group by 1, 2
      union all
      select c.organization_id, null, null, array_agg(
        row(c.organization_id, c.subject_id, c.counts_until, c.entry, c.requests, c.tokens)::usage_rate_correction)
      from (
        select k.organization_id, k.subject_id, k.counts_until, k.entry, sum(k.requests) as requests, sum(k.tokens) as tokens
        from unnest(corrections) k group by 1, 2, 3, 4
      ) c group by 1
      order by 1, 2 nulls first
    loop
      if organization is distinct from step.organization_id then
        perform usage_rate_save(s) from unnest(states) s;
        organization := step.organization_id;
        subjects := '{}';
        states := '{}';
        last_ends := '{}';
      end if;

      if step.request is null then
        foreach correction in array step.corrections loop
          n := array_position(subjects, correction.subject_id);
          if n is null then
            subjects := subjects || correction.subject_id;
            n := cardinality(subjects);
            states[n] := usage_rate_load(correction.subject_id, clock);
          end if;
          states[n] := usage_rate_apply(
            row(correction.subject_id, correction.counts_until, correction.entry, correction.requests, correction.tokens)::usage_rate_change,
            states[n]);
        end loop;
        continue;
      end if;

      tokens := (step.claims[1]).tokens;
      foreach claim in array step.claims loop
        n := array_position(subjects, claim.subject_id);
        if n is null then
          subjects := subjects || claim.subject_id;
          n := cardinality(subjects);
          states[n] := usage_rate_load(claim.subject_id, clock);
        end if;
        met := usage_rate_meet(claim, clock, states[n], last_ends[n]);
        states[n] := met.now;
        last_ends[n] := met.last_end;
        -- What it asks for, or what is left of it, or the least.
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
        if taken or states[n].requests >= claim.requests_limit or states[n].tokens + tokens > claim.tokens_limit then
          decision := usage_rate_decide(
            row(claim.position, claim.subject_id, claim.request_id, claim.singly, tokens, tokens,
              claim.requests_limit, claim.tokens_limit, null)::usage_rate_take,
            clock, last_ends[n], states[n]);
          states[n] := decision.now;
          last_ends[n] := decision.last_end;
          reply := decision.reply;
        else
          -- It has room, and another has none.
          reply := row(claim.position, false, null, null, null, states[n].requests, states[n].tokens,
            extract(epoch from last_ends[n] - clock) * 1000, 0, 0)::usage_rate_count;
        end if;
        return next reply;
      end loop;
    end loop;
    perform usage_rate_save(s) from unnest(states) s;
  end $$;
