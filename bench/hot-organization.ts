// Measures how much load a single organization can have: `bun bench/hot-organization.ts [seconds a rate] [rates, with
// commas] [requests a second of others]`. Three processes send to one Postgres what nodes send (with the product's
// batcher and ledger, but without HTTP). They admit requests of one organization at a steady rate, and settle each one
// 50 ms after its grant. At the same time they send requests of others, spread over 10,000 organizations. The column
// `lock` is how long a batch holds the locks of its organizations, without its commit.

import { readFileSync } from "node:fs";
import Table from "cli-table3";
import { migrate } from "../db/migrate.ts";
import { batcher } from "../src/core/admission/batcher.ts";
import { systemClock } from "../src/core/time/clock.ts";
import type { Database } from "../src/stores/postgres/database.ts";
import { ledger } from "../src/stores/postgres/ledger.ts";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { admitOf, newHex, settleOf } from "../test/core/store/ledger-stores.ts";
import { freshDatabase } from "../test/harness/services.ts";

const nodes = 3;
const others_count = 10_000;
const running_ms = 50;
const limits = { session: 1e14, week: 1e14, month: 1e14, concurrentRequests: 100_000 };

interface Task {
  url: string;
  hot: string;
  others: string[];
  rate: number;
  others_rate: number;
  length_s: number;
}
interface Outcome {
  /**
   * How long the hot organization's requests waited for their grants. Only requests that were granted before the end of
   * the run are included.
   */
  waits_ms: number[];
  failed: number;
  batches: number;
  commands: number;
  cpu_us: number;
}

async function main(): Promise<void> {
  const [length = "10", rates = "1000,2000,3000,4000,6000", beside = "0"] = process.argv.slice(2);
  const table = new Table({
    head: [
      "sent a second",
      "granted a second",
      "p50 ms",
      "p99 ms",
      "commands a batch",
      "lock ms",
      "Postgres, µs a request",
      "nodes, µs a request",
      "log of Postgres, bytes a request",
    ],
    style: { head: [], border: [] },
  });
  for (const rate of rates.split(",").map(Number)) {
    const database = await freshDatabase();
    const db = await serverDatabase(database.url);
    await migrate(db);
    await db.exec(`alter database ${new URL(database.url).pathname.slice(1)} set track_functions = 'all'`);
    const others = Number(beside) > 0 ? await organizations(db, others_count) : [];
    const [hot] = await organizations(db, 1);
    const tasks = Array.from({ length: nodes }, (): Task => {
      return {
        url: database.url,
        hot: hot!,
        others,
        rate: rate / nodes,
        others_rate: Number(beside) / nodes,
        length_s: Number(length),
      };
    });
    const measured = postgresCpu(db);
    const written = await logWritten(db);
    const outcomes = await Promise.all(tasks.map(inProcess));
    const cpu_us = await measured();
    const all = outcomes.reduce((one, other) => ({
      waits_ms: [...one.waits_ms, ...other.waits_ms],
      failed: one.failed + other.failed,
      batches: one.batches + other.batches,
      commands: one.commands + other.commands,
      cpu_us: one.cpu_us + other.cpu_us,
    }));
    const waits = all.waits_ms.sort((one, other) => one - other);
    table.push([
      rate,
      (waits.length / Number(length)).toFixed(0),
      ...[0.5, 0.99].map((share) => (waits[Math.floor(waits.length * share)] ?? Number.NaN).toFixed(1)),
      (all.commands / all.batches).toFixed(0),
      (await lock_ms(db)).toFixed(2),
      (cpu_us / (all.commands / 2)).toFixed(0),
      (all.cpu_us / (all.commands / 2)).toFixed(0),
      ((await written()) / (all.commands / 2)).toFixed(0),
    ]);
    await db.close();
    await database.drop();
  }
  console.log(table.toString());
}

async function organizations(db: Database, count: number): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `insert into organization (id, slug, name, anchor_at)
     select gen_random_uuid(), $1 || n, 'Bench', '2026-01-31Z' from generate_series(1, $2::int) n returning id::text`,
    [`bench-${newHex().slice(-6)}-`, count],
  );
  return rows.map(({ id }) => `org_${id.replaceAll("-", "")}`);
}

/**
 * Samples the CPU time of the backends that run batches. Returns a function that ends the sampling and returns their
 * sum. A backend that has ended is included with its last sample.
 */
function postgresCpu(db: Database): () => Promise<number> {
  const known = new Map<number, number>();
  const look = async () => {
    const rows = await db.query<{ pid: number }>(
      "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'",
    );
    for (const { pid } of rows) {
      try {
        known.set(pid, Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1000);
      } catch {
        // The backend has ended; its last sample is used.
      }
    }
  };
  const looks = setInterval(() => void look().catch(() => {}), 250);
  return async () => {
    clearInterval(looks);
    return [...known.values()].reduce((sum, one) => sum + one, 0);
  };
}

/**
 * Returns a function that returns the number of bytes of write-ahead log since this call, which is also the number of
 * bytes that replicas and archives receive.
 */
async function logWritten(db: Database): Promise<() => Promise<number>> {
  const [since] = await db.query<{ lsn: string }>("select pg_current_wal_insert_lsn()::text as lsn");
  return async () => {
    const [row] = await db.query<{ bytes: number }>(
      "select (pg_current_wal_insert_lsn() - $1::pg_lsn)::int8 as bytes",
      [since!.lsn],
    );
    return row!.bytes;
  };
}

/**
 * The mean milliseconds that a batch holds its locks. Postgres publishes a backend's function statistics when it ends,
 * or from time to time.
 */
async function lock_ms(db: Database): Promise<number> {
  const [row] = await db.query<{ ms: number }>(
    `select (sum(total_time) filter (where funcname = 'usage_batch') - sum(total_time) filter (where funcname = 'usage_lock'))
       / sum(calls) filter (where funcname = 'usage_batch') as ms from pg_stat_user_functions`,
  );
  return row!.ms;
}

async function inProcess(task: Task): Promise<Outcome> {
  const child = Bun.spawn([process.execPath, import.meta.path, "node"], {
    stdin: new Blob([JSON.stringify(task)]),
    stdout: "pipe",
    stderr: "inherit",
  });
  return JSON.parse(await child.stdout.text()) as Outcome;
}

async function node(task: Task): Promise<void> {
  const db = await serverDatabase(task.url);
  const book = ledger(db, { recovery: "checkpoint" });
  const outcome: Outcome = { waits_ms: [], failed: 0, batches: 0, commands: 0, cpu_us: 0 };
  const commands = batcher({
    ledger: {
      run(some) {
        outcome.batches += 1;
        outcome.commands += some.length;
        return book.run(some);
      },
    },
    clock: systemClock(),
    random: Math.random,
    failed: () => outcome.failed++,
  });
  const ends_ms = performance.now() + task.length_s * 1000;
  const request = async (organization: string, waits_ms: number[] | null) => {
    const command = admitOf(organization, { limits });
    const sent_ms = performance.now();
    const answer = await commands.submit(command);
    if (answer.answer === "granted" && performance.now() < ends_ms) waits_ms?.push(performance.now() - sent_ms);
    await Bun.sleep(running_ms);
    await commands.submit(settleOf(command, 700));
  };
  const before = process.cpuUsage();
  const pending = [
    steadily(task.rate, ends_ms, () => request(task.hot, outcome.waits_ms)),
    steadily(task.others_rate, ends_ms, () =>
      request(task.others[Math.floor(Math.random() * task.others.length)]!, null),
    ),
  ];
  await Promise.all(pending);
  const { user, system } = process.cpuUsage(before);
  outcome.cpu_us = user + system;
  await commands.stop(10_000);
  await book.close();
  await db.close();
  console.log(JSON.stringify(outcome));
}

/** Starts work at a steady rate without waiting for earlier work. Resolves when all of it is done. */
async function steadily(rate: number, ends_ms: number, work: () => Promise<void>): Promise<void> {
  const pending = new Set<Promise<void>>();
  const begun_ms = performance.now();
  for (let count = 0; rate > 0 && performance.now() < ends_ms; count++) {
    const wait_ms = begun_ms + (count * 1000) / rate - performance.now();
    if (wait_ms > 1) await Bun.sleep(wait_ms);
    const one: Promise<void> = work().finally(() => pending.delete(one));
    pending.add(one);
  }
  await Promise.all(pending);
}

if (process.argv[2] === "node") await node(JSON.parse(await Bun.stdin.text()) as Task);
else await main();
