-- Requests that were refused, so that their receipts can say so: src/store/refused.ts. They stand in no sum.

create table usage_refusal (
  request_id uuid primary key,
  organization_id uuid not null,
  -- Of refused_at, since 1970; an organization has ten places in each.
  second bigint not null,
  place smallint not null,
  key_id uuid not null,
  operation text not null,
  -- Null: the body was refused before it was understood, or names no model that there is.
  model text,
  stream boolean,
  error_code text not null,
  refused_at timestamptz not null,
  unique (organization_id, second, place)
);
