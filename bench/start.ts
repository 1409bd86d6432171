// bun bench/start.ts [TIMES]: measures the time from the start of the executable in TEST_SLUICE until it is ready on
// the embedded database, with a new data folder and with an existing one. Prints the median and the range, and the CPU
// time until then. With TEST_SLUICE_BEFORE, an older executable takes turns with it. Elapsed times are only valid on a
// quiet machine; CPU times are valid under some load, too.

import Table from "cli-table3";
import { median, type Start, type Starts, startTwice } from "./speed/start.ts";

const times = Number(process.argv[2] ?? 9);

async function main(): Promise<void> {
  const { TEST_SLUICE: now, TEST_SLUICE_BEFORE: before } = process.env;
  if (!now || !Number.isInteger(times) || times < 1) {
    console.error("usage: TEST_SLUICE=dist/sluice bun bench/start.ts [TIMES]");
    process.exit(2);
  }
  const programs = before ? { before, now } : { now };
  const all = Object.entries(programs).map(([name, program]) => ({ name, program, starts: noStarts() }));
  for (let time = 0; time < times; time++)
    for (const { program, starts } of time % 2 === 0 ? all : all.toReversed()) await startTwice(program, starts);
  const style = { head: [], border: [] };
  const table = new Table({ head: ["", "data folder", "ready after, ms", "from, to", "CPU, ms"], style });
  for (const { name, starts } of all) {
    table.push([name, "new", ...row(starts.fresh)]);
    table.push([name, "exists", ...row(starts.again)]);
  }
  console.log(table.toString());
}

const noStarts = (): Starts => ({ fresh: [], again: [] });

function row(starts: readonly Start[]): string[] {
  const took = starts.map(({ took_ms }) => took_ms);
  const range = `${Math.min(...took).toFixed(0)}, ${Math.max(...took).toFixed(0)}`;
  return [median(took).toFixed(0), range, median(starts.map(({ cpu_ms }) => cpu_ms)).toFixed(0)];
}

await main();
