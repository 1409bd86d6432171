-- When the days, weeks and months of a time zone begin, and how much of its limit a shortened window gets
-- (docs/design/usage.md, Calendars).

-- The first instant whose local date is `day` or later. Where clocks change, midnight may exist twice, or not at all.
-- `before` is midnight by the clocks of the day before, and `after` by those of the day after. The earlier one that exists
-- is returned. If neither does, the clocks skip midnight, and the minute at which they do is returned.
create function usage_day(zone text, day timestamp) returns timestamptz
  language sql stable parallel safe
  as $$
    select coalesce(
      case when c.before at time zone zone = day then c.before end,
      case when c.after at time zone zone = day then c.after end,
      (select min(m) from generate_series(c.after, c.before, interval '1 minute') m where m at time zone zone >= day))
    from (select day at time zone zone as midnight offset 0) n
    cross join lateral (
      select n.midnight - interval '24 hours' as yesterday, n.midnight + interval '24 hours' as tomorrow offset 0
    ) d
    cross join lateral (
      select (day - (d.yesterday at time zone zone - d.yesterday at time zone 'UTC')) at time zone 'UTC' as before,
        (day - (d.tomorrow at time zone zone - d.tomorrow at time zone 'UTC')) at time zone 'UTC' as after offset 0
    ) c
  $$;

-- The week in which the instant `at` lies. Weeks begin on the day `week_starts`, 1 for Monday to 7 for Sunday. Where clocks
-- go back over midnight, the local date may be the day before although the next week has begun.
create function usage_local_week(zone text, week_starts integer, at timestamptz)
  returns table (starts_at timestamptz, ends_at timestamptz)
  language sql stable parallel safe
  as $$
    select case when n.next <= at then n.next else usage_day(zone, w.day) end,
      case when n.next <= at then usage_day(zone, w.day + interval '14 days') else n.next end
    from (select date_trunc('day', at at time zone zone) as today) d
    cross join lateral (
      select d.today - make_interval(days => (date_part('isodow', d.today)::integer - week_starts + 7) % 7) as day offset 0
    ) w
    cross join lateral (select usage_day(zone, w.day + interval '7 days') as next offset 0) n
  $$;

-- The date in `month` on which a window begins: its day `month_starts`, or its last day if the month is shorter.
create function usage_month_day(month timestamp, month_starts integer) returns timestamp
  language sql immutable parallel safe
  as $$
    select month + make_interval(days =>
      least(month_starts, date_part('day', month + interval '1 month' - interval '1 day')::integer) - 1)
  $$;

create function usage_local_month(zone text, month_starts integer, at timestamptz)
  returns table (starts_at timestamptz, ends_at timestamptz)
  language sql stable parallel safe
  as $$
    select case when n.next <= at then n.next else usage_day(zone, usage_month_day(m.month, month_starts)) end,
      case when n.next <= at then usage_day(zone, usage_month_day(m.month + interval '2 months', month_starts))
        else n.next end
    from (select date_trunc('day', at at time zone zone) as today) d
    cross join lateral (
      select date_trunc('month', d.today) - case
        when usage_month_day(date_trunc('month', d.today), month_starts) > d.today then interval '1 month'
        else interval '0' end as month offset 0
    ) m
    cross join lateral (
      select usage_day(zone, usage_month_day(m.month + interval '1 month', month_starts)) as next offset 0
    ) n
  $$;

-- The limit of a window that is shorter than others, because it is only the end of a window that would have begun at
-- `whole_at`. It is the window's share of the whole limit, rounded up to a whole nano, so that it is at least 1. A null
-- `whole_at` means that the window is whole. The number that stands for no limit stays as it is (ledger_book.sql).
create function usage_in_proportion(whole_limit bigint, starts timestamptz, ends timestamptz, whole_at timestamptz)
  returns bigint
  language sql immutable parallel safe
  as $$
    select case when whole_at is null or whole_limit = 9007199254740991 then whole_limit else
      div(whole_limit * (extract(epoch from ends - starts) * 1000) + extract(epoch from ends - whole_at) * 1000 - 1,
        extract(epoch from ends - whole_at) * 1000)::bigint end
  $$;
