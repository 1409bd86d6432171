import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";

/**
 * How many processes share each core, at least 1: at this moment, or in the last minute, if there were more. A test
 * that promises a time multiplies the time by this. So on a quiet machine the time itself must be kept, and on a busy
 * one a time that fits the test's share of the machine.
 */
export function busyness(): number {
  return Math.max(1, Math.max(loadavg()[0]!, running()) / availableParallelism());
}

/** The number of processes and threads that run or wait for a core now; 0 where the system does not say. */
function running(): number {
  const file = "/proc/loadavg";
  return existsSync(file) ? Number(/(\d+)\/\d+/.exec(readFileSync(file, "utf8"))?.[1] ?? 0) : 0;
}
