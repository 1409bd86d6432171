// A batch looks rows up by their keys, whatever the planner's statistics say: row counts from a time when a table was
// nearly empty must not make it read whole indexes, including dead entries.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Command } from "../../../src/core/store/ledger.ts";
import type { Transaction } from "../../../src/stores/postgres/database.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { decodeAnswers } from "../../../src/stores/postgres/ledger-answers.ts";
import { batchCall, encodeBatch } from "../../../src/stores/postgres/ledger-batch.ts";
import { admitOf, checkpointOf, growOf, settleOf, unlimited } from "../../core/store/ledger-stores.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { databaseForTests } from "./databases.ts";

// Starting a database takes half a second, and many times that on a busy machine.
setDefaultTimeout(60_000);

const rows = 600;

describe.each(databaseKinds(import.meta.path))("the plans of a batch on %s", (kind) => {
  const db = databaseForTests(kind);
  const organization = `org_${Bun.randomUUIDv7().replaceAll("-", "")}`;
  const running = Array.from({ length: rows }, () => admitOf(organization));
  beforeAll(async () => {
    await db.query("insert into organization (id, slug, name, anchor_at) values ($1, 'one', 'One', '2026-01-31Z')", [
      organization.slice(4),
    ]);
    const book = ledger(db, { recovery: "checkpoint" });
    await book.run(running);
    const ended = Array.from({ length: rows }, () => admitOf(organization));
    await book.run(ended.map((one) => settleOf(one, 0)));
    await book.close();
    await db.exec(`
      insert into usage_past select gen_random_uuid(), 'week', '2026-01-31Z', '2026-02-07Z', 0, 0 from generate_series(1, ${rows});
      insert into usage_now (subject_id, generation, updates, running, starts_at, ends_at, used, held)
        select gen_random_uuid(), 1, 0, 0, array_fill('2026-01-31Z'::timestamptz, array[4]),
          array_fill('2026-02-07Z'::timestamptz, array[4]), '{0,0,0,0}', '{0,0,0,0}' from generate_series(1, ${rows});
      insert into organization (id, slug, name, anchor_at)
        select gen_random_uuid(), 'other-' || n, '', '2026-01-31Z' from generate_series(1, ${rows}) n;`);
  });

  for (const counted of [0, 1, 2, 40]) {
    test(`where ${counted} rows were counted, a batch reads what it names`, async () => {
      await db.query(
        `update pg_class set reltuples = $1, relpages = greatest(1, pg_relation_size(oid) / 8192)
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'i')`,
        [counted],
      );
      const [grown, extended, settled] = running.splice(0, 3).map((one) => ({ ...one, limits: unlimited }));
      const commands: Command[] = [
        admitOf(organization),
        growOf(grown!, 2000),
        checkpointOf(extended!, {}, { lease_ms: 1 }),
        settleOf(settled!, 5),
      ];
      const { answers, read } = await db.transaction(async (tx) => {
        const before = await tuplesRead(tx);
        const [answered] = await tx.query<{ answers: string }>(batchCall, encodeBatch(commands));
        const after = await tuplesRead(tx);
        return {
          answers: decodeAnswers(commands, answered!.answers)
            .answers.map(({ answer }) => answer)
            .sort(),
          read: [...after].map(([table, tuples]) => ({ table, tuples: tuples - (before.get(table) ?? 0) })),
        };
      });
      expect(answers).toEqual(["extended", "granted", "granted", "settled"]);
      expect(read.filter(({ tuples }) => tuples > rows / 10)).toEqual([]);
    });
  }

  test("a batch looks for records in the month of its requests alone, however many months there are", async () => {
    await db.query(
      "select usage_partition(usage_record_id(store_now() - n * interval '1 month')) from generate_series(1, 13) n",
    );
    const settled = { ...running.pop()!, limits: unlimited };
    const commands = [admitOf(organization), admitOf(organization), settleOf(settled, 5)];
    const months = await db.transaction(async (tx) => {
      const before = await monthsLookedInto(tx);
      await tx.query(batchCall, encodeBatch(commands));
      return [...(await monthsLookedInto(tx))].filter(([month, looks]) => looks > (before.get(month) ?? 0));
    });
    expect(months.map(([month]) => month)).toEqual([monthOf(new Date())]);
  });
});

/** The number of rows of each table that this session has read so far. */
async function tuplesRead(tx: Transaction): Promise<Map<string, number>> {
  const tables = await tx.query<{ name: string; tuples: number }>(
    "select relname as name, seq_tup_read + coalesce(idx_tup_fetch, 0) as tuples from pg_stat_xact_user_tables",
  );
  return new Map(tables.map(({ name, tuples }) => [name, tuples]));
}

/** How often this session has searched each partition so far. */
async function monthsLookedInto(tx: Transaction): Promise<Map<string, number>> {
  const months = await tx.query<{ name: string; looks: number }>(
    `select relname as name, seq_scan + idx_scan as looks from pg_stat_xact_user_tables
     where relname like 'usage\\_record\\_2%'`,
  );
  return new Map(months.map(({ name, looks }) => [name, looks]));
}

function monthOf(at: Date): string {
  return `usage_record_${at.toISOString().slice(0, 7).replace("-", "_")}`;
}
