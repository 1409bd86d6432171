/**
 * The connections that a worker has beyond its share. The kernel assigns connections by a hash of their addresses, so a
 * few long ones may be distributed unevenly. A worker with more open requests than the others closes some connections
 * after their answers; their clients connect again, and are assigned anew. Pure.
 */

/** Below this number of open requests, nobody waits for another. */
const open_min = 8;
/** How far above the mean a worker may be. */
const tolerance = 1.1;

/**
 * The connections that a worker closes in the coming second: half of its surplus, because other workers close some too.
 */
export function surplusOf(open: number, open_mean: number): number {
  if (open < open_min || open <= open_mean * tolerance) return 0;
  return Math.ceil((open - open_mean) / 2);
}
