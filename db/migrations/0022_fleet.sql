-- The processes that serve, as each reports itself every few seconds (docs/operating.md, The fleet). A node of several
-- workers has a row for each. After a crash of the database the rows come back by themselves, so they need no log.

create unlogged table fleet_process (
  -- The start of the node: its workers share it.
  node_id uuid not null,
  -- 0: the process is the whole node.
  worker smallint not null,
  name text not null,
  version text not null,
  -- The hash of the configuration in force.
  configuration text not null,
  started_at timestamptz not null,
  reported_at timestamptz not null,
  -- Readiness, figures and engines: src/store/fleet.ts.
  report jsonb not null,
  primary key (node_id, worker)
) with (fillfactor = 50);
