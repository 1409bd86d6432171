// Measures the lowest possible cost of a batch of the ledger: writes the same rows as a batch without deciding
// anything, in one statement with an `update … from unnest`. After the commit, it makes the same small write that waits
// for the disk.

import { readFileSync } from "node:fs";
import type { Database } from "../src/stores/postgres/database.ts";

export interface Floor {
  /**
   * Writes and commits the rows of a batch for these organizations. The batch settles as many requests as it admits.
   */
  write(organizations: readonly string[]): Promise<void>;
  cpu_us(): number;
  close(): Promise<void>;
}

/**
 * Prepares the measurement on a database that has at least one hold and one record, of which the inserted rows are
 * copies.
 */
export async function floorOf(db: Database): Promise<Floor> {
  const columns = async (table: string) => {
    const rows = await db.query<{ name: string }>(
      `select attname as name from pg_attribute where attrelid = '${table}'::regclass and attnum > 1 order by attnum`,
    );
    return rows.map(({ name }) => (name === "xact" ? "pg_current_xact_id()::text::bigint" : `t.${name}`)).join(", ");
  };
  const [ofHold, ofRecord] = [await columns("usage_hold"), await columns("usage_record")];
  await db.exec(`
    create table floor_hold as select * from usage_hold limit 1;
    create table floor_record as select * from usage_record limit 1;
    create procedure floor(organizations uuid[], admitted uuid[], settled uuid[]) language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(uuid_hash_extended(id, 0)) from unnest(organizations) id;
      with saved as (
        update usage_now n set updates = n.updates + 1, running = n.running, used = n.used, held = n.held
        from unnest(organizations) o (id) where n.subject_id = o.id
      ), gone as (delete from usage_hold where request_id = any (settled)),
      held as (insert into usage_hold select i.id, ${ofHold} from unnest(admitted) i (id) cross join floor_hold t)
      insert into usage_record select i.id, ${ofRecord} from unnest(settled) i (id) cross join floor_record t;
      commit;
      perform set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'sluice', '');
    end $$`);
  const lane = await db.lane({ synchronous_commit: "off", plan_cache_mode: "force_generic_plan" });
  const [backend] = await lane.query<{ pid: number }>("select pg_backend_pid() as pid");
  let running: string[] = [];
  return {
    async write(organizations) {
      const admitted = Array.from({ length: organizations.length / 2 }, () => Bun.randomUUIDv7());
      await lane.query("call floor($1::uuid[], $2::uuid[], $3::uuid[])", [
        organizations.map((id) => id.slice(4)),
        admitted,
        running,
      ]);
      running = admitted;
    },
    cpu_us: () => Number(readFileSync(`/proc/${backend!.pid}/schedstat`, "utf8").split(" ")[0]) / 1000,
    close: () => lane.close(),
  };
}
