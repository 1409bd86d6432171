// What an input may cost: processor time of this process by the input's size. How busy the machine is makes no difference.

/**
 * The processor time is that of the whole process, so it includes what the garbage collector and the compiler did
 * meanwhile. Therefore even an input of a few bytes may cost this much.
 */
const always_ms = 250;

/**
 * Does the work and returns its result. Throws if it took more than `ms_per_kb` of processor time for each KB. Work
 * that is too slow is repeated: only what is slow three times is slow by itself.
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
