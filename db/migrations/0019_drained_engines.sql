-- Engines that an operator has drained: they get no new requests (docs/routing.md, Draining an engine).

create table drained_engine (
  upstream text not null,
  -- An address of the upstream's name. The empty text stands for all of them.
  replica text not null default '',
  drained_at timestamptz not null,
  -- Null: until it is resumed.
  until timestamptz check (until > drained_at),
  actor text not null,
  primary key (upstream, replica)
);
