import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";

/**
 * How much longer than on a quiet, usual machine something may take, at least 1: how many processes share each core (at this
 * moment, or in the last minute, if there were more), or how slow the cores are, if that is more. A test that promises a time
 * multiplies the time by this. So on a quiet machine the time itself must be kept, and on a busy one a time that fits the
 * test's share of the machine.
 */
export function busyness(): number {
  return Math.max(slowness(), Math.max(loadavg()[0]!, running()) / availableParallelism());
}

/** The number of processes and threads that run or wait for a core now; 0 where the system does not say. */
function running(): number {
  const file = "/proc/loadavg";
  return existsSync(file) ? Number(/(\d+)\/\d+/.exec(readFileSync(file, "utf8"))?.[1] ?? 0) : 0;
}

/** What `loop_ms` measures on a usual machine: one on which the whole of `npm test` takes nine minutes. */
const usual_ms = 7;
let measured: number | undefined;

/** How much slower than a usual machine's the cores of this one are, at least 1. Measured at the first call. */
export function slowness(): number {
  measured ??= Math.max(1, Math.min(...Array.from({ length: 5 }, loop_ms)) / usual_ms);
  return measured;
}

function loop_ms(): number {
  const began = performance.now();
  let hash = 0;
  for (let at = 0; at < 4_000_000; at++) hash = Math.imul(hash ^ at, 0x01000193) + (at % 7);
  return hash === 1 ? 0 : performance.now() - began;
}
