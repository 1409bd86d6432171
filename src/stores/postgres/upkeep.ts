/**
 * Does the work of a Postgres server's background processes, which PGlite lacks. Without checkpoints the log grows
 * until the next start, which must then read all of it. Without vacuuming, tables grow by every row version, and after
 * two thousand million transactions writes stop. Without summaries of new pages, queries with a BRIN index read all of
 * these pages.
 */
import { type Repeating, repeating } from "../../core/time/clock.ts";
import type { Database } from "./database.ts";

export interface UpkeepLimits {
  every_ms: number;
  /**
   * The size of the log from which a checkpoint is written. A start after a crash reads about 200 MB of log a second.
   */
  log_bytes_max: number;
  /** The number of dead rows from which a table is vacuumed. */
  dead_rows_max: number;
}

export const upkeepLimits: UpkeepLimits = { every_ms: 5_000, log_bytes_max: 8_000_000, dead_rows_max: 1_000 };

type Statements = Pick<Database, "query" | "exec">;

/**
 * Repeats the upkeep until it is stopped. Its failures are ignored: the next query fails for the same reason, and
 * reports it.
 */
export function keepUp(database: Statements, limits: UpkeepLimits): Repeating {
  return repeating(() => tidy(database, limits).catch(() => {}), { every: limits.every_ms });
}

async function tidy({ query, exec }: Statements, limits: UpkeepLimits): Promise<void> {
  const [log] = await query<{ bytes: number }>(
    "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::int8 as bytes from pg_control_checkpoint()",
  );
  if ((log?.bytes ?? 0) <= limits.log_bytes_max) return;
  try {
    const tables = await query<{ name: string }>(untidy, [limits.dead_rows_max]);
    for (const { name } of tables) {
      await exec(`vacuum ${name}`);
    }
    await query(summarized);
  } finally {
    // On a full disk, a vacuum can fail. Without a checkpoint, the log would grow and fill the disk further.
    await exec("checkpoint");
  }
}

/** SQL for tables with many dead rows, and for tables so old that their transaction numbers must be frozen. */
const untidy = `
  select format('%I.%I', n.nspname, c.relname) as name
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  left join pg_stat_all_tables s on s.relid = c.oid
  where c.relkind = 'r' and (coalesce(s.n_dead_tup, 0) > $1 or age(c.relfrozenxid) > 150000000)`;

/** SQL that adds to BRIN indexes the summaries of pages that have none. */
const summarized = `
  select brin_summarize_new_values(c.oid) from pg_class c
  where c.relkind = 'i' and c.relam = (select oid from pg_am where amname = 'brin')`;
