// What an input may cost: processor time of this process by its size. A machine that is busy doesn't count.

/** Of the process, so what the collector and the compiler did meanwhile is in it; an input of a few bytes may cost this. */
const always_ms = 250;

/**
 * Runs it and answers its result. Throws if it took more than so many ms for each KB. A first run that is too slow is
 * repeated: only what is slow three times is slow by itself.
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
