// What streams cost by load, and how many a core bears: `bun bench/capacity.ts [LOAD…] [--rounds N] [--targets NAMES]
// [--others] [--pauses 0,25,50,100]`. A load is so many streams at any time and the milliseconds between their tokens: `256x25 128x8`. Each
// target in turn, round by round: CPU of the process for each event, the first token and the gaps. Without a load, the
// most events a second at which the first token's p99 is at most 100 ms more than the engine takes, and the gap's p99
// below pace + longest pause + 150 ms, at 25 and 8 ms a token, as `npm run bench -- --only capacity` has them. Targets
// are a process that passes requests on, nginx and Envoy where they are to be had, and a node on Postgres and Redis with
// every limit on, with pauses and without; with `--others` Portkey and LiteLLM, too. `--targets` names those that take
// part, with commas; `--pauses` has nodes that always pause for so long take part alone. TEST_SLUICE and TEST_SLUICE_BEFORE name executables, as for `npm run bench`.

import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { behaviourAt, capacityLines, flow, flowing, pausedName, told } from "./speed/capacity.ts";
import { hostSpeed, hostText } from "./speed/host.ts";
import { beforeHere, executable } from "./speed/machine.ts";
import { busyCores, pinOthers } from "./speed/process.ts";
import { markdown } from "./speed/report.ts";
import { names } from "./speed/scenarios.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "3" },
    targets: { type: "string", default: "" },
    others: { type: "boolean", default: false },
    pauses: { type: "string", default: "" },
  },
});
const pauses_ms = values.pauses === "" ? [] : values.pauses.split(",").map(Number);
const named = values.targets === "" ? null : values.targets.split(",");
const targets = pauses_ms.length > 0 ? pauses_ms.map(pausedName) : named;
const loads = positionals.map((load) => {
  const [streams = 0, every_ms = 0] = load.split("x").map(Number);
  if (!(streams > 0 && every_ms > 0)) throw new Error(`'${load}' is no load such as 256x25`);
  return { streams, every_ms };
});

async function costs(program: string): Promise<void> {
  await using ending = new AsyncDisposableStack();
  const paces = [...new Set(loads.map(({ every_ms }) => every_ms))];
  const asked = await flowing({ program, isWithOthers: false, targets, before, paces, pauses_ms }, ending);
  for (const { streams, every_ms } of loads) {
    const behaviour = behaviourAt(every_ms);
    for (let round = 1; round <= Number(values.rounds); round++)
      for (const { target, at } of asked) {
        const seen = await flow(target, at(behaviour), behaviour, streams);
        console.log(`${every_ms} ms, round ${round}, ${target.name}: ${told(seen)}; load ${loadavg()[0]!.toFixed(1)}`);
      }
  }
}

const program = await executable();
const before = beforeHere();
pinOthers();
console.log(`${(await busyCores()).toFixed(1)} cores are busy before`);
const host_before = await hostSpeed();
if (loads.length > 0) await costs(program);
else
  console.log(
    markdown(
      await capacityLines({ program, isWithOthers: values.others, targets, before }, console.log),
      Object.values(names),
      [],
    ),
  );
console.log(hostText(host_before, await hostSpeed()));
process.exit(0);
