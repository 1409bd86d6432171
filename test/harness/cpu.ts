import { readFileSync } from "node:fs";

/** Linux counts CPU time in /proc in clock ticks of a hundredth of a second. */
const ticks_per_s = 100;

/** The CPU time of this process and of its child processes that have ended, in seconds. Linux only. */
export function cpu_s(): number {
  return cpuOf_s("self");
}

/** The CPU time of another process and of its child processes that have ended, in seconds. */
export function cpuOf_s(process: number | "self"): number {
  const afterName = readFileSync(`/proc/${process}/stat`, "utf8").split(") ")[1]!.split(" ");
  return afterName.slice(11, 15).reduce((total, ticks) => total + Number(ticks), 0) / ticks_per_s;
}
