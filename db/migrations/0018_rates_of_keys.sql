-- Requests and tokens a minute of keys and teams, beside those of their organization (docs/design/usage.md, Sliding limits).
-- They are counted as those are (migration 0006).

alter table usage_subject
  add column requests_per_minute bigint check (requests_per_minute >= 1),
  add column tokens_per_minute bigint check (tokens_per_minute >= 1);
alter table key_default
  add column requests_per_minute bigint check (requests_per_minute >= 1),
  add column tokens_per_minute bigint check (tokens_per_minute >= 1);
