// How long the executable takes from its start to being ready, on the embedded database.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../test/harness/until.ts";
import { pinned } from "./process.ts";
import type { Line } from "./report.ts";
import { names } from "./scenarios.ts";
import { servingOn } from "./targets.ts";

const times = 3;

export async function startLines(program: string): Promise<Line[]> {
  const fresh: number[] = [];
  const again: number[] = [];
  for (let time = 0; time < times; time++) {
    const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
    fresh.push(await startOnce(program, folder));
    again.push(await startOnce(program, folder));
    rmSync(folder, { recursive: true, force: true });
  }
  const line = (id: string, name: string, values: number[], budget: number): Line => ({
    ...{ id, name, unit: "ms", as: null, budget },
    cells: { [names.embedded]: { value: Math.min(...values), compared: null, note: "" } },
  });
  return [
    line("start-again", "start of the executable to ready, data folder exists", again, 600),
    line("start-fresh", "start of the executable to ready, new data folder", fresh, 2000),
  ];
}

async function startOnce(program: string, folder: string): Promise<number> {
  const began = performance.now();
  const env = { PATH: process.env.PATH ?? "", PORT: "0", SLUICE_DATA_DIR: join(folder, "data") };
  const node = Bun.spawn(pinned([program, "serve"]), {
    ...{ cwd: folder, env, stdout: "pipe", stderr: Bun.file(join(folder, "log")) },
  });
  const url = await servingOn(node.stdout, join(folder, "log"));
  await until(async () => (await fetch(`${url}/readyz`)).status === 200, 30_000, "the node to be ready");
  const took_ms = performance.now() - began;
  node.kill("SIGINT");
  await node.exited;
  return took_ms;
}
