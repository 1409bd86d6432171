// Measures how long the executable takes from its start until it is ready, on the embedded database. Unlike other
// targets, it is not pinned to one core: its database starts in a separate thread, which can use another core.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/harness/daemon.ts";
import { percentile } from "./percentile.ts";
import { cpu_us } from "./process.ts";
import type { Line } from "./report.ts";
import { names } from "./scenarios.ts";

const times = 5;
const look_ms = 5;
const late_ms = 60_000;

export interface Start {
  took_ms: number;
  /** The CPU time of the process until it was ready. */
  cpu_ms: number;
}

export interface Starts {
  fresh: Start[];
  again: Start[];
}

export async function startLines(program: string): Promise<Line[]> {
  const starts: Starts = { fresh: [], again: [] };
  for (let time = 0; time < times; time++) await startTwice(program, starts);
  const line = (id: string, name: string, all: Start[], budget: number): Line => ({
    ...{ id, name, unit: "ms", as: null, budget },
    cells: { [names.embedded]: { value: median(all.map(({ took_ms }) => took_ms)), compared: null, note: "" } },
  });
  return [
    line("start-again", "start of the executable to ready, data folder exists", starts.again, 600),
    line("start-fresh", "start of the executable to ready, new data folder", starts.fresh, 1000),
  ];
}

export const median = (values: readonly number[]) => percentile(values, 0.5);

/** Starts the executable with a new data folder, and then once more with the same folder. */
export async function startTwice(program: string, { fresh, again }: Starts): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  fresh.push(await startOnce(program, folder));
  again.push(await startOnce(program, folder));
  rmSync(folder, { recursive: true, force: true });
}

async function startOnce(program: string, folder: string): Promise<Start> {
  const port = await freePort();
  const env = { PATH: process.env.PATH ?? "", PORT: String(port), SLUICE_DATA_DIR: join(folder, "data") };
  const log = Bun.file(join(folder, "log"));
  const began = performance.now();
  const node = Bun.spawn([program, "serve"], { cwd: folder, env, stdin: "ignore", stdout: "ignore", stderr: log });
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  while (!(await isReady())) {
    const isLate = performance.now() - began > late_ms;
    if (isLate) node.kill("SIGKILL");
    if (isLate || node.exitCode !== null) throw new Error(`the node did not become ready: ${await log.text()}`);
    await Bun.sleep(look_ms);
  }
  const start = { took_ms: performance.now() - began, cpu_ms: cpu_us(node.pid) / 1000 };
  node.kill("SIGINT");
  await node.exited;
  return start;
}
