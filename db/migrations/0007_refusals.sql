-- Requests that were refused, so that their receipts can say so: src/store/refused.ts. They stand in no sum.

create table usage_refusal (
  request_id uuid primary key,
  organization_id uuid not null,
  -- The second of refused_at, since 1970. An organization has ten places in each.
  second bigint not null,
  place smallint not null,
  key_id uuid not null,
  operation text not null,
  -- Null where the body was refused before it was understood, or names a model that does not exist.
  model text,
  stream boolean,
  error_code text not null,
  refused_at timestamptz not null,
  unique (organization_id, second, place)
);
