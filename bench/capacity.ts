// Measures the cost of streams under a given load, and how many streams one core can serve: `bun bench/capacity.ts
// [LOAD…] [--rounds N] [--targets NAMES] [--others] [--pauses 0,25,50,100]`. A load is the number of concurrent streams
// and the milliseconds between their tokens: `256x25 128x8`. With `128x25+256`, 256 more streams start together once a
// second; their times are not counted. The targets take turns, round by round. Prints the CPU time of the process per
// event, the time to the first token and the gaps between tokens.
//
// Without a load, it does the same as `npm run bench -- --only capacity`: at 25 and 8 ms per token, it searches for the
// highest rate of events at which the 99th percentile of the time to the first token is at most 100 ms above the
// engine's, and that of the gaps is below the set gap + the longest pause + 150 ms. A pause is a time in which a node
// does not read an engine's socket, so that several events are read together.
//
// The targets are a process that only passes requests on; nginx and Envoy if they can be found; the node's own engine
// client and event streams, which pass bytes on without counting tokens; and a node on Postgres and Redis with every
// limit on, with and without pauses. With `--others`, also Portkey and LiteLLM. `--targets` selects targets by name,
// separated by commas; `--pauses` measures only nodes that always pause for that many milliseconds. TEST_SLUICE and
// TEST_SLUICE_BEFORE name executables, as for `npm run bench`.

import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { behaviourAt, burstBehaviour, capacityLines, flow, flowing, told } from "./speed/capacity.ts";
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
const targets = values.targets === "" ? null : values.targets.split(",");
const loads = positionals.map((load) => {
  const [, streams, every_ms, together = "0"] = /^(\d+)x(\d+)(?:\+(\d+))?$/.exec(load) ?? [];
  if (!streams) throw new Error(`'${load}' is no load such as 256x25 or 128x25+256`);
  return { streams: Number(streams), every_ms: Number(every_ms), together: Number(together) };
});

async function costs(program: string): Promise<void> {
  await using ending = new AsyncDisposableStack();
  const behaviours = [...new Set(loads.map(({ every_ms }) => every_ms))].map(behaviourAt);
  const wanted = { program, isWithOthers: false, targets, before, pauses_ms };
  const asked = await flowing({ ...wanted, behaviours: [...behaviours, burstBehaviour] }, ending);
  for (const { streams, every_ms, together } of loads) {
    const behaviour = behaviourAt(every_ms);
    for (let round = 1; round <= Number(values.rounds); round++)
      for (const { target, at } of asked) {
        const burst = { ask: at(burstBehaviour), streams: together, tokens: burstBehaviour.tokens };
        const seen = await flow(target, at(behaviour), behaviour, streams, together > 0 ? burst : null);
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
