// Compares the costs of executables of Sluice: `bun bench/executables.ts [--seconds N] [--only IDS] NAME=PATH NAME=PATH
// …`. Each runs as a node on Postgres and Redis, with every limit on. In each round, each executable gets a slice of
// small requests and a slice of streams. With `--only`, which names scenarios of `npm run bench`, separated by commas,
// it gets a slice of each of these instead. Rounds are repeated until the given seconds have passed. Prints the CPU
// time of a request and of a streamed token, and the median of the ratios to the first executable in the same round.
// Name the first executable twice to see the noise: the difference between two processes of the same program.

import { parseArgs } from "node:util";
import Table from "cli-table3";
import { nodesBeside } from "./speed/beside.ts";
import { percentile } from "./speed/percentile.ts";
import { busyCores, cpu_us, pinOthers } from "./speed/process.ts";
import { behaviours, type Scenario, scenarios, warmStream } from "./speed/scenarios.ts";
import { askerOf } from "./speed/slice.ts";
import { type Driven, warmed } from "./speed/warming.ts";
import { closely } from "./steady.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "300" }, only: { type: "string", default: "" } },
});
const connections_count = 64;
const slice_s = 1;
const warming_s = 6;
const small = scenarios.find(({ id }) => id === "small-chat")!;
const kinds: Record<string, Scenario> =
  values.only === ""
    ? { "a small request": small, "a streamed token": { ...small, behaviour: warmStream, isStreamed: true } }
    : Object.fromEntries(values.only.split(",").map((id) => [`a request of ${id}`, scenarioOf(id)]));

interface Cost {
  name: string;
  kind: string;
  us: number;
}

function scenarioOf(id: string): Scenario {
  const scenario = scenarios.find((one) => one.id === id);
  if (!scenario) throw new Error(`there is no scenario '${id}'`);
  return scenario;
}

async function main(): Promise<void> {
  const busy = await busyCores();
  pinOthers();
  await using ending = new AsyncDisposableStack();
  const driven = await nodesBeside(positionals, behaviours, ending);
  await warmed([...driven.values()], warming_s, (text) => console.error(text));
  if (values.only !== "") await roundOf(driven, 0, warming_s);
  const costs: Cost[][] = [];
  while (costs.length === 0 || performance.now() < Number(values.seconds) * 1000)
    costs.push(await roundOf(driven, costs.length));
  console.log(tableOf(costs, [...driven.keys()]));
  console.log(`${busy.toFixed(2)} cores were busy before, ${costs.length} rounds`);
}

/** Measures all executables once. A different one goes first in each round. */
async function roundOf(driven: ReadonlyMap<string, Driven>, round: number, length_s = slice_s): Promise<Cost[]> {
  const all = [...driven];
  const ordered = all.map((_, at) => all[(at + round) % all.length]!);
  const costs: Cost[] = [];
  for (const [kind, scenario] of Object.entries(kinds))
    for (const [name, { target, connections, count }] of ordered) {
      const asker = askerOf(target, connections, scenario, count);
      const latencies: number[] = [];
      const before = cpu_us(target.pid);
      await closely(asker, { length_s, connections: connections_count, latencies });
      const tokens = scenario.behaviour === warmStream ? scenario.behaviour.tokens : 1;
      costs.push({ name, kind, us: (cpu_us(target.pid) - before) / latencies.length / tokens });
    }
  return costs;
}

function tableOf(rounds: readonly Cost[][], names: readonly string[]): string {
  const table = new Table({
    head: ["CPU of", "node", "µs, median", "to the first, median", "middle half"],
    style: { head: [], border: [] },
  });
  for (const kind of Object.keys(kinds))
    for (const name of names) {
      const of = (who: string) => rounds.map((costs) => costs.find((one) => one.kind === kind && one.name === who)!.us);
      const ratios = of(name).map((us, at) => us / of(names[0]!)[at]!);
      const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => percentile(ratios, share).toFixed(3));
      table.push([kind, name, percentile(of(name), 0.5).toFixed(2), `x ${middle}`, `${low} to ${high}`]);
    }
  return table.toString();
}

await main();
