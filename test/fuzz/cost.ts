// Bounds the CPU time of this process for an input, in proportion to the input's size. CPU time does not depend on
// other processes' load.

/**
 * The constant part of the bound, in milliseconds. The CPU time is that of the whole process, so it includes garbage
 * collection and compilation, and even an input of a few bytes may cost this much.
 */
const always_ms = 250;

/**
 * Runs the work and returns its result. Throws if it took more than `ms_per_kb` of CPU time per KB. Work that exceeds
 * the bound is repeated: only if it exceeds the bound three times is it too slow.
 */
export function affordable<T>(bytes: number, ms_per_kb: number, work: () => T): T {
  const limit_ms = always_ms + (bytes / 1024) * ms_per_kb;
  let cost_ms = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < 3; turn++) {
    const before = process.cpuUsage();
    const result = work();
    const { user, system } = process.cpuUsage(before);
    cost_ms = Math.min(cost_ms, (user + system) / 1000);
    if (cost_ms <= limit_ms) return result;
  }
  throw new Error(
    `${bytes} bytes cost ${Math.round(cost_ms)} ms of the processor; the limit is ${Math.round(limit_ms)}`,
  );
}
