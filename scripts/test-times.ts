// The cost of each test file: `npm test -- --times`. CPU time is read from /proc, so this works on Linux only.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cpu_s } from "../test/harness/cpu.ts";
import type { Environment } from "./test-environment.ts";

interface Cost {
  name: string;
  cpu_s: number;
  took_s: number;
}

const fileIn = (folder: string) => join(folder, "times.jsonl");

/** The environment in which test/harness/times.ts writes each file's cost to the folder. */
export function recorded(folder: string, environment: Environment): Environment {
  return { ...environment, TEST_TIMES: fileIn(folder) };
}

/** The total CPU time of the services, in seconds, which is only known when they have ended. */
export async function servicesCpu_s(stopped: () => Promise<unknown>): Promise<number> {
  const before_s = cpu_s();
  await stopped();
  return cpu_s() - before_s;
}

/** A table of the test files, the most expensive first, with the sums. */
export function costs(folder: string, services_s: number): string {
  const file = fileIn(folder);
  const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  const all = lines.map((line) => JSON.parse(line) as Cost).sort((a, b) => b.cpu_s - a.cpu_s);
  const files_s = all.reduce((total, one) => total + one.cpu_s, 0);
  const row = (cpu: number, took: string, name: string) =>
    `${cpu.toFixed(1).padStart(8)}  ${took.padStart(8)}  ${name}`;
  return [
    "   CPU s    time s  file",
    ...all.map((one) => row(one.cpu_s, one.took_s.toFixed(1), one.name)),
    row(services_s, "", "Postgres and Redis"),
    row(files_s + services_s, "", "together"),
  ].join("\n");
}
