// Measures the cost of a request when many organizations are active: `bun bench/organizations.ts [--rounds N] [--counts
// 1,100,10000] [--connections 64] [--requests 3000] [--fsync] NAME=PATH …`. Each executable is a node on Postgres and
// Redis, with every limit on. For each count, that many organizations, with one key each, send a number of requests (a
// slice) in turn; the slices of all counts and nodes alternate. Prints the CPU time per request of the node, of the
// Postgres sessions of the node's database, and of Redis. Also prints the ratio to the CPU time with one organization:
// the median of the ratios of neighbouring slices.

import { parseArgs } from "node:util";
import Table from "cli-table3";
import { type Beside, nodesBeside, redisPidOf, sessionsOf } from "./speed/beside.ts";
import { organizations } from "./speed/organizations.ts";
import { percentile } from "./speed/percentile.ts";
import { busyCores, pinOthers, ran_us } from "./speed/process.ts";
import { behaviours, scenarios } from "./speed/scenarios.ts";
import { type Asker, askerOf } from "./speed/slice.ts";
import { onDisk } from "./speed/stores.ts";
import { counted } from "./steady.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ rounds: { type: "string", default: "5" }, counts: { type: "string", default: "1,100,10000" } },
    ...{ connections: { type: "string", default: "64" }, requests: { type: "string", default: "3000" } },
    fsync: { type: "boolean", default: false },
  },
});
const counts = values.counts.split(",").map(Number);
const connections = Number(values.connections);
const requests = Number(values.requests);
const small = scenarios.find(({ id }) => id === "small-chat")!;

interface Cost {
  node: number;
  Postgres: number;
  Redis: number;
}
const parts = ["node", "Postgres", "Redis"] as const;

/** A node, and a function that sends it a request, for each number of organizations. */
interface Measured extends Beside {
  redisPid: number;
  askers: Map<number, Asker>;
}

async function main(): Promise<void> {
  const busy = await busyCores();
  pinOthers();
  await using ending = new AsyncDisposableStack();
  const measured = new Map<string, Measured>();
  for (const [name, node] of await nodesBeside(positionals, behaviours, ending, values.fsync ? onDisk : [])) {
    const redisPid = await redisPidOf(node);
    const keys = await organizations(node.sql, Math.max(...counts));
    const askers = new Map(counts.map((count) => [count, inTurn(node, keys.slice(0, count))]));
    measured.set(name, { ...node, redisPid, askers });
  }
  const costs = new Map<string, Cost[]>();
  const slices = [...measured].flatMap(([name, node]) => counts.map((count) => ({ name, node, count })));
  for (const { node, count } of slices) await sliceOf(node, count);
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const { name, node, count } of round % 2 ? slices : slices.toReversed()) {
      const label = labelOf(name, count);
      costs.set(label, [...(costs.get(label) ?? []), await sliceOf(node, count)]);
    }
  }
  const table = new Table({
    head: ["µs a request", ...parts.flatMap((part) => [part, `÷ ${counts[0]}`])],
    style: { head: [], border: [], compact: true },
  });
  for (const { name, count } of slices) {
    const of = (label: string) => costs.get(label)!;
    const [all, one] = [of(labelOf(name, count)), of(labelOf(name, counts[0]!))];
    table.push([
      labelOf(name, count),
      ...parts.flatMap((part) =>
        cellsOf(
          all.map((cost) => cost[part]),
          one.map((cost) => cost[part]),
        ),
      ),
    ]);
  }
  console.log(table.toString());
  console.log(`${busy.toFixed(2)} cores were busy before`);
}

const labelOf = (name: string, count: number) => `${name}, ${count}`;

function cellsOf(all: number[], one: number[]): string[] {
  const ratios = all.map((value, at) => value / one[at]!);
  return [percentile(all, 0.5).toFixed(0), percentile(ratios, 0.5).toFixed(2)];
}

/** Returns a function that sends each request with the next key. */
function inTurn({ target, connections, count }: Beside, keys: readonly string[]): Asker {
  const askers = keys.map((key) => {
    const headers = { ...target.headers, authorization: `Bearer ${key}` };
    return askerOf({ ...target, headers }, connections, small, count);
  });
  let turn = 0;
  return () => askers[turn++ % askers.length]!();
}

async function sliceOf({ target, sql, redisPid, askers }: Measured, count: number): Promise<Cost> {
  const sessions = await sessionsOf({ sql });
  const now = () => ({
    node: ran_us(target.pid),
    Postgres: sessions.reduce((sum, pid) => sum + ran_us(pid), 0),
    Redis: ran_us(redisPid),
  });
  const before = now();
  await counted(askers.get(count)!, { count: requests, connections });
  const after = now();
  const each = (part: keyof Cost) => (after[part] - before[part]) / requests;
  return { node: each("node"), Postgres: each("Postgres"), Redis: each("Redis") };
}

await main();
