/**
 * Connections that a worker has beyond its share. The kernel deals connections out by a hash of their addresses, so that a
 * few that live long may lie unevenly. A worker with more open requests than the others closes some connections behind
 * their answers; their clients make new ones, which are dealt out anew. Pure.
 */

/** Below that nobody waits for another. */
const open_min = 8;
/** How far above the mean a worker may be. */
const tolerance = 1.1;

/** How many connections a worker lets go of in the coming second: half of what it has too many, for others let go too. */
export function surplusOf(open: number, open_mean: number): number {
  if (open < open_min || open <= open_mean * tolerance) return 0;
  return Math.ceil((open - open_mean) / 2);
}
