// Fills a migrated database for the console's benchmark: with the records of bench/requests-fill.ts, and the other data
// that the pages show: daily roll-ups, plans, teams, keys, people, and each organization's usage in its current
// session, week and month.

import type { Lane } from "../src/stores/postgres/database.ts";
import { fillRequests, uuidFor, withoutRollUpKey } from "./requests-fill.ts";

export interface Filling {
  records: number;
  organizations: number;
}

export async function fillConsole(lane: Lane, { records, organizations }: Filling): Promise<void> {
  await fillRequests(lane, records, organizations);
  const restoring = await withoutRollUpKey(lane, "usage_day");
  for (const text of [...days, ...restoring, ...beside]) await lane.query(text);
  // Vacuums and freezes the tables, as upkeep would have done in a database that has grown over time. The rows of a
  // month are stored next to each other, so an index finds them with few reads.
  for (const table of ["usage_day", "usage_total"]) await lane.query(`vacuum (analyze, freeze) ${table}`);
}

const days = [
  "alter table usage_day set unlogged",
  `insert into usage_day
   select date_bin('1 day', h.starts_at, '2000-01-01Z'), h.organization_id, h.key_id, h.team_id, h.model, h.operation,
     h.outcome, sum(h.records), sum(h.requests), sum(h.input_tokens), 0, 0, sum(h.output_tokens), 0, sum(h.nanos), 0, 0
   from usage_hour h group by 1, 2, 3, 4, 5, 6, 7 order by 1`,
  `insert into usage_rolled
   select starts_at, 3, 3, sum(records)::bigint, now() from usage_day group by 1 on conflict do nothing`,
  "insert into usage_total select * from usage_totals_of('-infinity', 'infinity') order by starts_at",
];

const beside = [
  "update organization set plan = 'pro', name = 'Organization ' || slug where slug like 'org-%'",
  `insert into team (id, organization_id, name)
   select ${uuidFor("team", "n")}, ${uuidFor("organization", "0")}, 'team ' || n from generate_series(0, 3) n`,
  `insert into api_key (id, organization_id, name, scopes)
   select ${uuidFor("key", "o * 100 + k")}, ${uuidFor("organization", "o")}, 'key ' || k, '{inference:create}'
   from (select split_part(slug, '-', 2)::bigint as o from organization where slug like 'org-%') one
   cross join generate_series(0, 19) k where o = 0 or k < 2`,
  `insert into usage_now (subject_id, generation, updates, running, starts_at, ends_at, used, held)
   select o.id, 1, 0, 0, w.starts_at, w.ends_at, array[u.nanos / 40, u.nanos / 5, u.nanos, 0], '{0,0,0,0}'
   from organization o cross join lateral usage_windows_at(o.id, now()) w
   cross join lateral (select (hashtextextended(o.slug, 1) & 16777215) as nanos) u where o.slug like 'org-%'
   on conflict do nothing`,
  "analyze",
];
