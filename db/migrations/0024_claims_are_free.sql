-- A request with an idempotency key whose node is gone is charged nothing: its client asks again with the same key, and
-- pays once. The rest of the function is that of 0004.
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
    book := (usage_settle(commands, limits, true, clock, book)).book;
    perform usage_save(book);
    return cardinality(commands);
  end $$;
