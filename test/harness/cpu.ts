import { readFileSync } from "node:fs";

/** Linux counts CPU time in /proc in clock ticks of a hundredth of a second. */
const ticks_per_s = 100;

/** The CPU time that this process has used, with that of its children that have ended. Linux only. */
export function cpu_s(): number {
  return cpuOf_s("self");
}

/** The CPU time of another process, with that of its children that have ended. */
export function cpuOf_s(process: number | "self"): number {
  const afterName = readFileSync(`/proc/${process}/stat`, "utf8").split(") ")[1]!.split(" ");
  return afterName.slice(11, 15).reduce((total, ticks) => total + Number(ticks), 0) / ticks_per_s;
}
