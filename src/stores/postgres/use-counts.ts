/**
 * Counts over SQL how often a code or link was used. A single statement counts, so of two simultaneous uses only one is the
 * first.
 */
import type { UseCounts } from "../../features/identity/store/use-counts.ts";
import type { Database } from "./database.ts";

export function useCounts(db: Database): UseCounts {
  return {
    async count(about, value, lasts_ms) {
      const [row] = await db.query<{ uses: number }>(
        `insert into use_count as c (hash, uses, ends_at) values ($1, 1, store_now() + $2::bigint * interval '1 ms')
         on conflict (hash) do update set
           uses = case when c.ends_at <= store_now() then 1 else c.uses + 1 end,
           ends_at = case when c.ends_at <= store_now() then excluded.ends_at else c.ends_at end
         returning uses`,
        [hashOf(about, value), lasts_ms],
      );
      return row!.uses;
    },

    async uncount(about, value) {
      await db.query("update use_count set uses = greatest(uses - 1, 0) where hash = $1", [hashOf(about, value)]);
    },

    async counted(about, value) {
      const [row] = await db.query<{ uses: number }>(
        "select uses from use_count where hash = $1 and ends_at > store_now()",
        [hashOf(about, value)],
      );
      return row?.uses ?? 0;
    },

    async forget() {
      const rows = await db.query(
        `delete from use_count where hash in (select hash from use_count where ends_at <= store_now() limit 1000)
         returning uses`,
      );
      return rows.length;
    },
  };
}

/** The hash is unambiguous, since no `about` contains a line break. */
const hashOf = (about: string, value: string) => Bun.SHA256.hash(`${about}\n${value}`) as Uint8Array;
