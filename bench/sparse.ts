// Shows the components of the cost of a single request: `bun bench/sparse.ts [--rounds N] [--only WORD] [--fsync]
// NAME=PATH …`. Each executable is a node on Postgres and Redis, with every limit on. In each round, all of them get a
// slice of each load. Prints figures per request, or per second for the load `at rest`, which has no requests: the CPU
// time of the node and its threads, of the Postgres sessions of its own database, and of Redis; and counts of wake-ups
// of the main thread, page faults, transactions and calls to Redis. The counts are valid on any machine; times can only
// be compared with each other.

import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { type Beside, nodesBeside, redisPidOf, sessionsOf } from "./speed/beside.ts";
import { percentile } from "./speed/percentile.ts";
import { busyCores, pinOthers } from "./speed/process.ts";
import { behaviours, type Scenario, scenarios } from "./speed/scenarios.ts";
import { askerOf } from "./speed/slice.ts";
import { onDisk } from "./speed/stores.ts";
import { warmed } from "./speed/warming.ts";
import { closely, steadily } from "./steady.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    only: { type: "string", default: "" },
    fsync: { type: "boolean", default: false },
  },
});
const warming_s = 12;
const scenarioOf = (id: string) => scenarios.find((one) => one.id === id)!;
const [close, steady] = [scenarioOf("sparse-4"), scenarioOf("sparse-100")];
const latencies: number[] = [];

interface Load {
  scenario: Scenario;
  /** Runs the load, and resolves when it is over. */
  run(ask: () => Promise<unknown>): Promise<unknown>;
}

const loads: Record<string, Load> = {
  "at rest, a second": { scenario: steady, run: () => Bun.sleep(4000) },
  "100 a second": { scenario: steady, run: (ask) => steadily(ask, { length_s: 4, rate: 100, latencies }) },
  "1 connection": { scenario: close, run: (ask) => closely(ask, { length_s: 2, connections: 1, latencies }) },
  "4 connections": { scenario: close, run: (ask) => closely(ask, { length_s: 2, connections: 4, latencies }) },
  "64 connections": { scenario: close, run: (ask) => closely(ask, { length_s: 1, connections: 64, latencies }) },
};

type Figures = Map<string, number>;

async function main(): Promise<void> {
  const busy = await busyCores();
  pinOthers();
  await using ending = new AsyncDisposableStack();
  const measured = await nodesBeside(positionals, behaviours, ending, values.fsync ? onDisk : []);
  const chat = [...measured.values()].map((one) => ({ ...one, target: { ...one.target, speaks: ["chat"] as const } }));
  await warmed(chat, warming_s, (text) => console.error(text));
  for (const [name, load] of Object.entries(loads)) {
    if (!name.includes(values.only)) continue;
    const rounds: Map<string, Figures>[] = [];
    for (let round = -1; round < Number(values.rounds); round++) {
      const all = [...measured];
      const figures = new Map<string, Figures>();
      for (const [at] of all.entries()) {
        const [who, one] = all[(at + round + all.length) % all.length]!;
        figures.set(who, await sliceOf(one, load));
      }
      if (round >= 0) rounds.push(figures);
    }
    console.log(`\n${name}\n${tableOf(rounds, [...measured.keys()])}`);
  }
  console.log(`${busy.toFixed(2)} cores were busy before`);
}

async function sliceOf(one: Beside, { scenario, run }: Load): Promise<Figures> {
  const asker = askerOf(one.target, one.connections, scenario, one.count);
  latencies.length = 0;
  const pids = await sessionsOf(one);
  const [before, began_ms] = [await countersOf(one, pids), performance.now()];
  await run(asker);
  const [after, took_ms] = [await countersOf(one, pids), performance.now() - began_ms];
  const nanos = latencies.length || took_ms / 1000;
  const figures: Figures = new Map(
    [...after].map(([name, value]) => [name, (value - (before.get(name) ?? 0)) / nanos]),
  );
  if (latencies.length > 0) figures.set("p50, ms", percentile(latencies, 0.5)).set("requests", latencies.length);
  return figures;
}

async function countersOf({ target, sql, redis }: Beside, sessions: readonly number[]): Promise<Figures> {
  const counters: Figures = new Map();
  const add = (name: string, value: number) => counters.set(name, (counters.get(name) ?? 0) + value);
  // Transactions are counted by the next transaction ID, because the statistics of sessions are updated late.
  // Transactions that only read have no ID.
  const [xact] = await sql<
    { next: string; wal: string }[]
  >`select pg_snapshot_xmax(pg_current_snapshot())::text as next,
    pg_current_wal_insert_lsn() - '0/0' as wal`;
  add("written transactions", Number(xact!.next));
  add("bytes of the log", Number(xact!.wal));
  const calls = /total_commands_processed:(\d+)/.exec(String(await redis.send("INFO", ["stats"])))?.[1];
  add("calls of Redis", Number(calls));
  const redisPid = await redisPidOf({ redis });
  add("Redis, µs", ran_us(`/proc/${redisPid}/schedstat`));
  for (const pid of sessions) {
    add("Postgres, µs", ran_us(`/proc/${pid}/schedstat`));
    add("wakes of Postgres", switches(`/proc/${pid}/status`));
  }
  for (const thread of readdirSync(`/proc/${target.pid}/task`)) {
    const folder = `/proc/${target.pid}/task/${thread}`;
    const us = ran_us(`${folder}/schedstat`);
    const isMain = Number(thread) === target.pid;
    add("node, µs", us);
    add(
      isMain
        ? "main thread, µs"
        : `${readFileSync(`${folder}/comm`, "utf8")
            .trim()
            .replace(/[\s\d:]+$/, "")}, µs`,
      us,
    );
    if (isMain) add("wakes of the main thread", switches(`${folder}/status`));
  }
  const fields = readFileSync(`/proc/${target.pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
  add("page faults", Number(fields[7]));
  add("in the kernel, µs", Number(fields[12]) * 10_000);
  return counters;
}

const ran_us = (path: string) => Number(read(path).split(" ")[0] || 0) / 1000;
const switches = (path: string) => Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(read(path))?.[1] ?? 0);

/** Reads a file in /proc; empty if the process or thread has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function tableOf(rounds: readonly Map<string, Figures>[], names: readonly string[]): string {
  const others = names.slice(1);
  const table = new Table({
    head: ["median", ...names, ...others.map((name) => `${name} ÷ ${names[0]}`)],
    style: { head: [], border: [], compact: true },
  });
  const kinds = new Set(rounds.flatMap((round) => [...round.values()].flatMap((figures) => [...figures.keys()])));
  for (const kind of kinds) {
    const of = (who: string) => rounds.map((round) => round.get(who)!.get(kind) ?? 0);
    const middle = (some: number[]) => percentile(some, 0.5);
    if (names.every((name) => middle(of(name)) < 0.01)) continue;
    const ratios = others.map((name) => middle(of(name).map((value, at) => value / of(names[0]!)[at]!)).toFixed(2));
    table.push([kind, ...names.map((name) => middle(of(name)).toPrecision(4)), ...ratios]);
  }
  return table.toString();
}

await main();
