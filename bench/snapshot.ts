// Measures how an old snapshot affects the ledger: `bun bench/snapshot.ts [seconds] [batches a second] [seconds a
// slice]`. Two databases on one Postgres get the same load, batch by batch, for one organization: each batch has four
// admissions, and the settlements of the requests that were admitted a second before. One more request runs during the
// whole bench and is checkpointed. In one of the two databases, another connection holds a snapshot during the whole
// time, as pg_dump does. Compare the columns for each slice of time.

import { readFileSync } from "node:fs";
import Table from "cli-table3";
import { migrate } from "../db/migrate.ts";
import { noUsage } from "../src/core/inference/usage.ts";
import type { Admit } from "../src/core/store/ledger.ts";
import type { Database } from "../src/stores/postgres/database.ts";
import { ledger } from "../src/stores/postgres/ledger.ts";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { admitOf, newHex, settleOf } from "../test/core/store/ledger-stores.ts";
import { freshDatabase } from "../test/harness/services.ts";

const [length_s = 120, rate = 200, slice_s = 10] = process.argv.slice(2, 5).map(Number);
const sweep_ms = 5_000;
const limits = { session: 1e14, week: 1e14, month: 1e14, concurrentRequests: 100_000 };

interface Slice {
  latencies_ms: number[];
  sweeps_ms: number[];
  cpu_us: number;
}
interface Subject {
  /** Sends one batch, and waits for its result. */
  step(): Promise<unknown>;
  sweep(): Promise<unknown>;
  /** The CPU time of the connections that run batches. */
  cpu_us(): number;
  dead(): Promise<number>;
  close(): Promise<void>;
}

async function subject(isWatched: boolean): Promise<Subject> {
  const database = await freshDatabase();
  const db = await serverDatabase(database.url);
  await migrate(db);
  const organization = `org_${newHex()}`;
  await db.query("insert into organization (id, slug, name, anchor_at) values ($1, 'bench', 'Bench', '2026-01-31Z')", [
    organization.slice(4),
  ]);
  const load = await pairs(db, organization);
  const letGo = isWatched ? await bystander(database.url) : async () => {};
  return {
    ...load,
    async dead() {
      const [row] = await db.query<{ dead: number }>("select sum(n_dead_tup)::int as dead from pg_stat_user_tables");
      return row!.dead;
    },
    async close() {
      await letGo();
      await load.close();
      await db.close();
      await database.drop();
    },
  };
}

type Load = Pick<Subject, "step" | "sweep" | "cpu_us" | "close">;

async function pairs(db: Database, organization: string): Promise<Load> {
  // On a busy machine a batch may wait for long. The wait is part of the batch's latency, and must not make the batch
  // fail.
  const book = ledger(db, { recovery: "checkpoint", lanes: 1, answer_ms: 60_000 });
  const lasting = admitOf(organization, { limits });
  const running: Admit[][] = [];
  let number = 0;
  await book.run([lasting]);
  const pid = await latestBackend(db);
  return {
    step() {
      const admits = Array.from({ length: 4 }, () => admitOf(organization, { limits }));
      const settles = (running.length >= rate ? running.shift()! : []).map((one) => settleOf(one, 700));
      running.push(admits);
      return book.run([...settles, ...admits]);
    },
    async sweep() {
      await book.run([{ ...lasting, verb: "checkpoint", number: ++number, usage: noUsage }]);
      await book.recover(100);
    },
    cpu_us: () => cpuOf(pid),
    close: () => book.close(),
  };
}

async function latestBackend(db: Database): Promise<number> {
  const [backend] = await db.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' order by backend_start desc limit 1",
  );
  return backend!.pid;
}

const cpuOf = (pid: number) => Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1000;

/** Holds a snapshot until the returned function is called. */
async function bystander(url: string): Promise<() => Promise<void>> {
  const db = await serverDatabase(url);
  const connection = await db.lane({ idle_in_transaction_session_timeout: "0" });
  await connection.query("begin isolation level repeatable read");
  await connection.query("select count(*) from organization");
  return async () => {
    await connection.close();
    await db.close();
  };
}

/** Sends batches at a steady rate without waiting for earlier ones, to the two databases in turn. */
async function run(subjects: Subject[]): Promise<void> {
  const table = new Table({
    head: [
      "at s",
      "p50 ms",
      "watched",
      "p99 ms",
      "watched",
      "CPU, µs a batch",
      "watched",
      "sweep ms",
      "watched",
      "dead rows",
    ],
    style: { head: [], border: [] },
  });
  const started = performance.now();
  let swept = started;
  for (let at_s = 0; at_s < length_s; at_s += slice_s) {
    const slices = subjects.map((one): Slice => ({ latencies_ms: [], sweeps_ms: [], cpu_us: -one.cpu_us() }));
    const pending: Promise<unknown>[] = [];
    for (let count = 0; count < slice_s * rate; count++) {
      for (const [index, one] of subjects.entries()) {
        const due = started + 1000 * (at_s + (count + index / subjects.length) / rate);
        const wait = due - performance.now();
        if (wait > 1) await Bun.sleep(wait);
        const sent = performance.now();
        pending.push(one.step().then(() => slices[index]!.latencies_ms.push(performance.now() - sent)));
      }
      if (performance.now() - swept < sweep_ms) continue;
      swept = performance.now();
      for (const [index, one] of subjects.entries()) {
        const sent = performance.now();
        pending.push(one.sweep().then(() => slices[index]!.sweeps_ms.push(performance.now() - sent)));
      }
    }
    await Promise.all(pending);
    const figures = slices.map((slice, index) => {
      slice.cpu_us += subjects[index]!.cpu_us();
      return slice;
    });
    const row = (figure: (slice: Slice) => string) => figures.map(figure);
    const dead = await subjects.at(-1)!.dead();
    const cells = [
      ...row(({ latencies_ms }) => quantile(latencies_ms, 0.5)),
      ...row(({ latencies_ms }) => quantile(latencies_ms, 0.99)),
      ...row(({ cpu_us, latencies_ms }) => (cpu_us / latencies_ms.length).toFixed(0)),
      ...row(({ sweeps_ms }) => (sweeps_ms.length === 0 ? "–" : quantile(sweeps_ms, 0.5))),
    ];
    table.push([at_s + slice_s, ...cells, dead]);
    console.error([at_s + slice_s, ...cells, dead].join("  "));
  }
  console.log(table.toString());
}

function quantile(values: number[], share: number): string {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length * share)]!.toFixed(1);
}

const subjects = [await subject(false), await subject(true)];
try {
  await run(subjects);
} finally {
  for (const one of subjects) await one.close();
}
