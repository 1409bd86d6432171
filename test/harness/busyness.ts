import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";

/**
 * A factor, at least 1, by which time limits of tests are multiplied: the number of processes that share each core
 * (now, or in the last minute, whichever is more), or the slowness of the cores, whichever is larger. On a quiet, usual
 * machine it is 1, so the time limit itself applies; on a busy one, the limit fits the test's share of the machine.
 */
export function busyness(): number {
  return Math.max(slowness(), Math.max(loadavg()[0]!, running()) / availableParallelism());
}

/** The number of processes and threads that run or wait for a core now; 0 where the system does not say. */
function running(): number {
  const file = "/proc/loadavg";
  return existsSync(file) ? Number(/(\d+)\/\d+/.exec(readFileSync(file, "utf8"))?.[1] ?? 0) : 0;
}

/** The result of `loop_ms` on a usual machine, which is one that runs the whole of `npm test` in nine minutes. */
const usual_ms = 7;
let measured: number | undefined;

/**
 * How many times slower this machine's cores are than those of a usual machine, at least 1. Measured at the first call.
 */
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
