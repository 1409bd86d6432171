// Measures whether warming up before the first client is worth the wait: `bun bench/warm-up.ts [--rounds N] [--rate R]
// MS…` with the executable in TEST_SLUICE. `MS` are values of `server.warm_up_ms` (by default 0 and 2000). In each
// round, a new node on Postgres and Redis is started with each value in turn. As soon as it serves, it gets requests at
// a steady rate (200 per second), as from a load balancer that has just discovered it. Prints, in milliseconds and as
// the median of the rounds, how long a node takes from its start until it serves. For each of its first seconds, it
// prints the median, the 99th percentile and the maximum of the requests' latencies.

import { parseArgs } from "node:util";
import Table from "cli-table3";
import { startPostgres, startRedis } from "../test/harness/services.ts";
import { pool } from "./speed/client.ts";
import { executable } from "./speed/machine.ts";
import { percentile } from "./speed/percentile.ts";
import { busyCores, cpu_us, pinOthers } from "./speed/process.ts";
import { behaviours, scenarios } from "./speed/scenarios.ts";
import { askerOf } from "./speed/slice.ts";
import { median } from "./speed/start.ts";
import { databaseBeside } from "./speed/stores.ts";
import { type NodeOptions, startEngineProcess, startNode } from "./speed/targets.ts";
import { steadily } from "./steady.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "5" }, rate: { type: "string", default: "200" } },
});
const rate = Number(values.rate);
const seconds = 5;

interface Start {
  ready_ms: number;
  /** The latencies in milliseconds of the requests of each second. */
  seconds: number[][];
  /** The CPU time of the node from its start until its last response. */
  cpu_ms: number;
}

type Places = Pick<NodeOptions, "program" | "engineUrl" | "stores">;

async function main(): Promise<void> {
  const waits = positionals.length > 0 ? positionals : ["0", "2000"];
  const busy = await busyCores();
  pinOthers();
  await using ending = new AsyncDisposableStack();
  const engine = await startEngineProcess();
  ending.defer(() => engine.stop());
  const [server, counters] = await Promise.all([startPostgres(), startRedis()]);
  ending.defer(() => server.stop());
  ending.defer(() => counters.stop());
  const program = [await executable()];
  const starts = new Map<string, Start[]>(waits.map((wait) => [wait, []]));
  for (let round = 0; round < Number(values.rounds); round++)
    for (const [at, wait] of (round % 2 === 0 ? waits : waits.toReversed()).entries()) {
      // Each node gets a new database, because it creates the organization of the bench. Its measured start includes the
      // creation of the tables.
      const databaseUrl = await databaseBeside(server.url, `start_${round}_${at}`);
      const stores = { databaseUrl, redisUrl: `${counters.url}/${at}` };
      starts.get(wait)!.push(await startOf({ program, engineUrl: engine.url, stores }, Number(wait)));
    }
  console.log(`${tableOf(starts)}\n${busy.toFixed(2)} cores were busy before`);
}

async function startOf(places: Places, warm_up_ms: number): Promise<Start> {
  const plans = [{ name: "on", plan: "on" as const }];
  const [target] = await startNode({ ...places, behaviours, plans, server: { warm_up_ms } });
  const connections = pool(target!.url);
  try {
    const scenario = scenarios.find(({ id }) => id === "sparse-100")!;
    const asker = askerOf({ ...target!, speaks: ["chat"] }, connections, scenario, { asked: 0, answered: 0 });
    const each: number[][] = [];
    for (let second = 0; second < seconds; second++) {
      const latencies: number[] = [];
      await steadily(asker, { length_s: 1, rate, latencies });
      each.push(latencies);
    }
    return { ready_ms: target!.ready_ms!, seconds: each, cpu_ms: cpu_us(target!.pid) / 1000 };
  } finally {
    connections.close();
    await target!.stop();
  }
}

function tableOf(starts: Map<string, Start[]>): string {
  const heads = Array.from({ length: seconds }, (_, at) => `second ${at + 1}: p50, p99, slowest`);
  const table = new Table({
    head: ["warm_up_ms", "serves after, ms", ...heads, "CPU, ms"],
    style: { head: [], border: [] },
  });
  const middle = (all: readonly number[], digits = 0) => median(all).toFixed(digits);
  for (const [wait, all] of starts) {
    const cells = heads.map((_, at) => {
      const ofSecond = all.map((start) => start.seconds[at]!);
      return [0.5, 0.99, 1]
        .map((share) =>
          middle(
            ofSecond.map((one) => percentile(one, share)),
            1,
          ),
        )
        .join(", ");
    });
    const ready = all.map(({ ready_ms }) => ready_ms);
    table.push([wait, middle(ready), ...cells, middle(all.map(({ cpu_ms }) => cpu_ms))]);
  }
  return table.toString();
}

await main();
