// `npm run migrations`: checks whether the newest migration can be applied while nodes serve. Fills a database of the
// previous schema with records, takes on every table the locks that requests take, and applies the migration. The check
// fails in two cases, each on a table that existed before:
// - The migration holds a lock that blocks writers for longer than 100 ms.
// - It waits longer than 100 ms for such a lock, because other transactions queue behind it.
//
// `-- --records N` (default: 1 million; 10 million take 5 GB and 6 minutes). `--from 0012` checks that migration and
// all later ones.

import { parseArgs } from "node:util";
import Table from "cli-table3";
import postgres from "postgres";
import { fill } from "../bench/scale-fill.ts";
import { type Migrated, migrate, migrations } from "../db/migrate.ts";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { freshDatabase } from "../test/harness/services.ts";

const hold_ms_max = 100;
/**
 * How long a probe (a transaction that locks a table as a request does) holds its lock: as long as a batch of writes to
 * the ledger holds it.
 */
const probeHold_ms = 5;
const probePause_ms = 25;
const organizations = 1_000;
const { values } = parseArgs({
  args: Bun.argv.slice(2),
  options: { records: { type: "string", default: "1000000" }, from: { type: "string" } },
});

interface Seen {
  /** How long the writers of each table were blocked, in milliseconds. The key is the table's name. */
  holds: Map<string, number>;
  took_ms: number;
  longestWait_ms: number;
}

async function main(): Promise<void> {
  const records = Number(values.records);
  const first = values.from ? migrations.findIndex(({ name }) => name.startsWith(values.from!)) : migrations.length - 1;
  if (!Number.isInteger(records) || records < 0 || first < 0)
    throw new Error("usage: npm run migrations -- [--records N] [--from 0012]");
  // The first migration is the baseline, which is applied to an empty database without writers.
  if (first === 0) return console.log("there is no migration since the baseline");
  const database = await freshDatabase();
  const db = await serverDatabase(database.url, { statement_ms: 3_600_000 });
  const table = new Table({
    head: ["migration", "additive", "took, ms", "stopped writers, ms", "of", "a request waited, ms"],
    style: { head: [], border: [] },
  });
  let refused = 0;
  try {
    await migrate(db, migrations.slice(0, first));
    await filled(db, records);
    for (let count = first + 1; count <= migrations.length; count++) {
      const { name, additive = false } = migrations[count - 1]!;
      const { holds, took_ms, longestWait_ms } = await watched(database.url, db, count);
      const [longest] = [...holds].sort((one, other) => other[1] - one[1]);
      const hold_ms = longest?.[1] ?? 0;
      if (hold_ms > hold_ms_max) refused += 1;
      table.push([
        name,
        additive ? "yes" : "no",
        ...[took_ms, hold_ms].map(Math.round),
        longest?.[0] ?? "",
        Math.round(longestWait_ms),
      ]);
    }
  } finally {
    await db.close();
    await database.drop();
  }
  console.log(`${records} records\n${table.toString()}`);
  if (refused > 0) console.log(`${refused} refused: writers may be stopped for ${hold_ms_max} ms at most`);
  process.exit(refused > 0 ? 1 : 0);
}

type Database = Awaited<ReturnType<typeof serverDatabase>>;

async function filled(db: Database, records: number): Promise<void> {
  const lane = await db.lane({ work_mem: "64MB" });
  await fill(lane, { records, organizations });
  const [numbered] = await lane.query(
    "select from pg_attribute where attrelid = 'audit_entry'::regclass and attname = 'number'",
  );
  // The audit log has fewer entries than there are requests.
  await lane.query(
    `insert into audit_entry (actor, action, subject, details${numbered ? ", number" : ""})
     select 'cli:ann', 'key.create', 'key_' || n, '{}'${numbered ? ", -n" : ""} from generate_series(1, $1::bigint) n`,
    [Math.ceil(records / 10)],
  );
  await lane.query("vacuum analyze");
  await lane.close();
}

/** Applies the migration with this number, and monitors its locks on other connections. */
async function watched(url: string, db: Database, count: number): Promise<Seen> {
  const tables = await db.query<{ oid: number; name: string }>(
    `select oid::int as oid, relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`,
  );
  const sql = postgres(url, { max: tables.length + 1, onnotice: () => {} });
  const locks = watchLocks(sql, new Map(tables.map(({ oid, name }) => [oid, name])));
  const probes = startProbes(
    sql,
    tables.map(({ name }) => name),
  );
  // After this pause, the probes have their connections, and caches are warm.
  await Bun.sleep(2000);
  probes.forget();
  const began = performance.now();
  try {
    await migrate(locks.traced(db), migrations.slice(0, count));
  } finally {
    await Promise.all([locks.stop(), probes.stop()]);
    await sql.end();
  }
  return { ...locks.seen(), longestWait_ms: probes.longestWait_ms(), took_ms: locks.ended_ms() - began };
}

/**
 * Measures how long a traced transaction blocks the writers of each table: from when its lock is first seen until the
 * transaction ends.
 */
function watchLocks(sql: postgres.Sql, names: ReadonlyMap<number, string>) {
  const from = new Map<string, number>();
  let pid: number | null = null;
  let end_ms = 0;
  let stops = false;
  const look = async () => {
    while (!stops) {
      if (pid === null) await Bun.sleep(1);
      else {
        // Both held locks and awaited ones count, because other transactions queue behind both.
        const locked = await sql<{ relation: number }[]>`
          select relation::int as relation from pg_locks where pid = ${pid} and locktype = 'relation'
          and mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`;
        const now = performance.now();
        for (const name of locked.flatMap(({ relation }) => names.get(relation) ?? []))
          if (!from.has(name)) from.set(name, now);
      }
    }
  };
  const looking = look();
  return {
    traced: (db: Migrated): Migrated => ({
      query: db.query.bind(db),
      exec: db.exec.bind(db),
      async transaction(work, options) {
        const result = await db.transaction(async (tx) => {
          pid = (await tx.query<{ pid: number }>("select pg_backend_pid() as pid"))[0]!.pid;
          return work(tx);
        }, options);
        end_ms = performance.now();
        pid = null;
        return result;
      },
    }),
    ended_ms: () => end_ms,
    seen: () => ({ holds: new Map([...from].map(([name, from_ms]) => [name, Math.max(0, end_ms - from_ms)])) }),
    async stop() {
      stops = true;
      await looking;
    },
  };
}

/** Locks each table repeatedly, as requests do, each time for as long as a batch of writes to the ledger would. */
function startProbes(sql: postgres.Sql, names: string[]) {
  let longest_ms = 0;
  let stops = false;
  const probe = async (name: string) => {
    while (!stops) {
      const began = performance.now();
      await sql.unsafe(
        `do $$ begin lock table "${name}" in row exclusive mode; perform pg_sleep(${probeHold_ms / 1000}); end $$`,
      );
      longest_ms = Math.max(longest_ms, performance.now() - began - probeHold_ms);
      await Bun.sleep(probePause_ms);
    }
  };
  const probing = Promise.all(names.map(probe));
  return {
    longestWait_ms: () => longest_ms,
    forget() {
      longest_ms = 0;
    },
    async stop() {
      stops = true;
      await probing;
    },
  };
}

await main();
