-- What was learned of models from their engines' reports, so that a restart does not forget it: src/store/calibration.ts.
-- What is plausible the reader judges; input and output are each known as a whole, or null.

create table model_calibration (
  model_id text primary key,
  -- Tokens a byte of the body, and the mean distance of single inputs from that.
  input_ratio double precision,
  input_spread double precision,
  -- Sums over whole streams; older ones have faded. A letter is a UTF-16 unit.
  output_tokens double precision,
  output_deltas double precision,
  output_letters double precision,
  updated_at timestamptz not null
) with (fillfactor = 50);

-- As in migration 0003, but that an operator's entry in the book is no request: one that adjusts a session has the
-- session's boundaries, as requests that ran have.
create or replace function usage_rate_read(organization uuid, singly boolean, clock timestamptz) returns void
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
