/** Reads the figures of a server that an operator should watch: docs/databases.md, What to watch. */
import type { DatabaseSigns } from "../../features/upkeep/store/signs.ts";
import type { Querying } from "./database.ts";

/** Reads the figures in one statement over views of the server; any role may read these columns. */
export async function signsOf(db: Querying): Promise<DatabaseSigns> {
  const [row] = await db.query<DatabaseSigns>(`
    select
      coalesce(greatest(
        -- The WAL sender of a replica with hot_standby_feedback counts too. It belongs to no database.
        (select max(greatest(age(a.backend_xmin), age(a.backend_xid))) from pg_stat_activity a
         where (a.datname = current_database() or a.datname is null) and a.pid <> pg_backend_pid()),
        (select max(greatest(age(s.xmin), age(s.catalog_xmin))) from pg_replication_slots s),
        (select max(age(p.transaction)) from pg_prepared_xacts p where p.database = current_database())
      ), 0) as "oldestSnapshot_transactions",
      (select coalesce(sum(t.n_dead_tup), 0)::bigint from pg_stat_user_tables t) as "deadRows",
      (select age(d.datfrozenxid) from pg_database d where d.datname = current_database()) as "unfrozen_transactions"`);
  return row!;
}
