/**
 * The surplus connections of a worker. The kernel assigns connections by a hash of their addresses, so a few long-lived
 * ones may be distributed unevenly. A worker with more open requests than the others closes some connections after
 * their answers; their clients connect again, and are assigned anew. Pure.
 */

/** A worker with fewer open requests than this closes no connection: none of its clients waits for another. */
const open_min = 8;
/** A worker may have this many times the mean number of open requests. */
const tolerance = 1.1;

/**
 * The number of connections that a worker closes in the next second: half of its surplus, because other workers close
 * some too.
 */
export function surplusOf(open: number, open_mean: number): number {
  if (open < open_min || open <= open_mean * tolerance) return 0;
  return Math.ceil((open - open_mean) / 2);
}
