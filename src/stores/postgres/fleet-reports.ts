/** The reports of the fleet's processes, over SQL. */
import {
  type Fleet,
  type FleetReports,
  type ProcessReport,
  processes_max,
  type ReportDetails,
  type StoredReport,
  silent_ms,
} from "../../core/store/fleet.ts";
import type { Database, Querying } from "./database.ts";

interface Row {
  node_id: string;
  worker: number;
  name: string;
  version: string;
  configuration: string;
  started_at: Date;
  age_ms: number;
  report: ReportDetails;
}

/**
 * Writes a report, and selects the number of other processes that have reported recently. A report of the future is of a
 * process that ended before the clock was set back: one that lives reports anew.
 */
const writing = `
  with written as (
    insert into fleet_process (node_id, worker, name, version, configuration, started_at, reported_at, report)
    values ($1, $2, $3, $4, $5, $6, store_now(), $7)
    on conflict (node_id, worker) do update set
      name = excluded.name, version = excluded.version, configuration = excluded.configuration,
      started_at = excluded.started_at, reported_at = excluded.reported_at, report = excluded.report
  )
  select count(*)::int4 as others from fleet_process
  where (node_id, worker) <> ($1, $2)
    and abs(extract(epoch from store_now() - reported_at)) * 1000 < $8`;

/** Deletes old reports. Skips rows that their processes are writing, so that nodes never wait for each other. */
const forgetting = `
  delete from fleet_process where (node_id, worker) in (
    select node_id, worker from fleet_process
    where reported_at < store_now() - $1 * interval '1 millisecond'
    for update skip locked)`;

const listing = `
  select node_id, worker, name, version, configuration, started_at, report,
    floor(extract(epoch from store_now() - reported_at) * 1000)::int8 as age_ms
  from fleet_process order by started_at, node_id, worker limit $1`;

export function fleetReports(db: Pick<Database, "query" | "kind">): FleetReports {
  let others = 0;
  return {
    async report({ node, worker, name, version, configuration, ...details }: ProcessReport) {
      const own = [node.id, worker, name, version, configuration, node.startedAt, details];
      const [row] = await db.query<{ others: number }>(writing, [...own, silent_ms]);
      others = row!.others;
    },
    // The embedded database has one process. Another's report was left when that was killed.
    processes: () => (db.kind === "pglite" ? 1 : 1 + others),
    async leave({ id }, worker) {
      await db.query("delete from fleet_process where node_id = $1 and worker = $2", [id, worker]);
    },
    async forget(age_ms) {
      await db.query(forgetting, [age_ms]);
    },
  };
}

export function fleet(db: Querying): Fleet {
  return {
    listProcesses: async () => (await db.query<Row>(listing, [processes_max])).map(reportOf),
  };
}

function reportOf({ node_id: id, started_at: startedAt, report, ...row }: Row): StoredReport {
  const { worker, name, version, configuration, age_ms } = row;
  return { node: { id, startedAt }, worker, name, version, configuration, age_ms: Math.max(0, age_ms), ...report };
}
