// Measures the cost of the ledger with 13 months of records: `bun bench/scale.ts [records] [URL of a database to keep]
// [full]`. Fills a database with records (by default 20 million: about 10 GB and 10 minutes; 300000 for a quick run),
// and runs the same statements in turns on it and on an empty one. Prints milliseconds and the number of touched pages.
// A database given by its URL is filled if it has no records, and is kept. Nothing waits for a disk (fsync is off).

import Table from "cli-table3";
import { migrate } from "../db/migrate.ts";
import { idOf } from "../src/core/store/ids.ts";
import type { Admit, Command } from "../src/core/store/ledger.ts";
import type { Database, Lane } from "../src/stores/postgres/database.ts";
import { batchCall, encodeBatch } from "../src/stores/postgres/ledger-batch.ts";
import { keepUpPartitions } from "../src/stores/postgres/partitions.ts";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { admitOf, settleOf } from "../test/core/store/ledger-stores.ts";
import { freshDatabase } from "../test/harness/services.ts";
import { fill, organizationOf } from "./scale-fill.ts";

const records = Number(process.argv[2] ?? 20_000_000);
const given = process.argv[3];
const asksAll = process.argv[4] === "full";
const organizations = 1_000;
const turns = 25;
/** The number of turns for slow statements. */
const longTurns = 3;

interface Subject {
  db: Database;
  lane: Lane;
  organizations: string[];
  /** The requests that were admitted and are running. The next batch settles them. */
  running: Admit[];
  drop(): Promise<void>;
}
interface Taken {
  ms: number;
  pages: number;
}
interface Question {
  name: string;
  turns: number;
  /** Is run before each turn, and not measured. */
  before?: (subject: Subject) => Promise<unknown>;
  /** Returns the statement to measure. */
  text(subject: Subject): Promise<string> | string;
}

async function subject(count: number, url?: string): Promise<Subject> {
  const database = url ? { url, drop: async () => {} } : await freshDatabase();
  const db = await serverDatabase(database.url, { statement_ms: 3_600_000 });
  await migrate(db);
  const lane = await db.lane({ work_mem: "64MB", plan_cache_mode: "force_generic_plan" });
  const [has] = await db.query<{ some: boolean }>("select exists (select from usage_record) as some");
  if (!has!.some) await fill(lane, { records: count, organizations });
  const named = await db.query<{ id: string }>(`select ${organizationOf} as id from generate_series(0, $1 - 1) n`, [
    organizations,
  ]);
  const ids = named.map(({ id }) => idOf(id, "org_"));
  return {
    ...{ db, lane, organizations: ids, running: [] },
    async drop() {
      await lane.close();
      await db.close();
      await database.drop();
    },
  };
}

const pick = <T>(some: readonly T[]): T => some[Math.floor(Math.random() * some.length)]!;
const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
const limits = { session: 1e14, week: 1e14, month: 1e14, concurrentRequests: 100_000 };

function batch(of: Subject): string {
  const admits = Array.from({ length: 8 }, () => admitOf(pick(of.organizations), { limits }));
  const commands: Command[] = [...of.running.map((one) => settleOf(one, 700)), ...admits];
  of.running = admits;
  return encodeBatch(commands).reduce(
    (text, value, at) => text.replace(`$${at + 1}::`, () => `${quoted(value)}::`),
    batchCall,
  );
}

/**
 * SQL for a past session of each organization. Its total agrees with its records, so the audit can mark it as checked
 * (seal it). `unripe` removes these rows again.
 */
const ripe = `select ${organizationOf}, 'session'::usage_window_kind, '2026-03-03 03:03Z'::timestamptz, '2026-03-03 08:03Z'::timestamptz`;
const unripe = ["usage_past", "usage_tally", "usage_seal"].map(
  (table) => `delete from ${table} where starts_at = '2026-03-03 03:03Z'`,
);
async function ripen({ lane }: Subject): Promise<void> {
  for (const text of unripe) await lane.query(text);
  await lane.query(`insert into usage_past ${ripe}, 7, 0 from generate_series(0, ${organizations - 1}) n`);
  await lane.query(`insert into usage_tally ${ripe}, 7, 1 from generate_series(0, ${organizations - 1}) n`);
}

const questions: Question[] = [
  { name: "admission: a batch of 8 admitted and 8 settled", turns, text: batch },
  {
    name: "usage of an organization",
    turns,
    text: ({ organizations: all }) => `select * from usage_window_now where organization_id = '${pick(all).slice(4)}'`,
  },
  {
    name: "receipt",
    turns,
    async text({ lane }) {
      const month = `now() - interval '1 month' * ${Math.random() * 12}`;
      const [row] = await lane.query<{ id: string }>(
        `select request_id as id from usage_record where request_id > usage_record_id(${month}) order by 1 limit 1`,
      );
      return `select * from usage_record where request_id = '${row?.id ?? crypto.randomUUID()}' and operation <> 'adjustment'`;
    },
  },
  {
    name: "sweep for lapsed leases",
    turns,
    text: () => "select * from usage_recover(200, false, '{}', usage_record_id(now() - interval '1 minute'))",
  },
  {
    name: "hourly look: reading on, 100 batches",
    turns: longTurns,
    async before(of) {
      for (let count = 0; count < 100; count++) await of.lane.query(batch(of));
    },
    text: () => "select usage_audit_read(10000)",
  },
  { name: "hourly look: comparing", turns, text: () => "select * from usage_differences('open')" },
  {
    name: "hourly look: sealing 1,000 windows",
    turns: longTurns,
    before: ripen,
    text: () => "select usage_seal_ended(1000)",
  },
  {
    name: "hourly look: what is behind",
    turns,
    before: async ({ lane }) => {
      for (const text of unripe) await lane.query(text);
    },
    text: () => "select usage_audit_done(0)",
  },
  { name: "usage check", turns: longTurns, text: () => "select * from usage_differences('sealed')" },
  // With 20 million records, this statement takes minutes.
  { name: "usage check --full", turns: asksAll ? 1 : 0, text: () => "select * from usage_differences('full')" },
];

async function measured({ before, text }: Question, of: Subject): Promise<Taken> {
  await before?.(of);
  const [row] = await of.lane.query<{ "QUERY PLAN": unknown }>(
    `explain (analyze, buffers, timing off, format json) ${await text(of)}`,
  );
  const said = row!["QUERY PLAN"];
  const [{ Plan, "Planning Time": planning, "Execution Time": execution }] =
    typeof said === "string" ? JSON.parse(said) : said;
  return { ms: planning + execution, pages: Plan["Shared Hit Blocks"] + Plan["Shared Read Blocks"] };
}

const median = (values: number[]) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;

async function main(): Promise<void> {
  const subjects = [await subject(0), await subject(records, given)];
  const table = new Table({
    head: ["", "empty, ms", "full, ms", "empty, pages", "full, pages"],
    style: { head: [], border: [] },
  });
  for (const question of questions.filter((one) => one.turns > 0)) {
    const taken = subjects.map((): Taken[] => []);
    for (let turn = -2; turn < question.turns; turn++) {
      for (const [at, one] of subjects.entries()) {
        const sample = await measured(question, one);
        if (turn >= 0) taken[at]!.push(sample);
      }
    }
    const cells = [
      ...taken.map((some) => median(some.map(({ ms }) => ms)).toFixed(1)),
      ...taken.map((some) => median(some.map(({ pages }) => pages))),
    ];
    table.push([question.name, ...cells]);
    console.error([question.name, ...cells].join("  "));
  }
  const upkeep = [];
  for (const { db } of subjects) {
    const started = performance.now();
    await keepUpPartitions(db);
    upkeep.push((performance.now() - started).toFixed(0));
  }
  table.push(["upkeep: what is older than 13 months is dropped", ...upkeep, "", ""]);
  console.log(table.toString());
  for (const one of subjects) await one.drop();
}

await main();
