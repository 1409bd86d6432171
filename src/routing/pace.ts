/** How soon a route begins to answer, beside its peers. Pure. */

export interface Pace {
  /** Until the first part, beyond what the size of the request explains: a moving mean, in milliseconds. */
  mean_ms: number;
  count: number;
}

const share = 0.1;
/** A mean of fewer says little. */
const count_min = 10;
/** So many times later than its peers, and so much, is far beyond. */
const factor = 4;
const floor_ms = 2_000;

export function paced(pace: Pace | undefined, taken_ms: number): Pace {
  if (!pace) return { mean_ms: taken_ms, count: 1 };
  // Of the first few, the plain mean.
  const part = Math.max(share, 1 / (pace.count + 1));
  return { mean_ms: pace.mean_ms + part * (taken_ms - pace.mean_ms), count: pace.count + 1 };
}

/** Without peers that are known well enough, nothing is slow. */
export function isFarBeyond(taken_ms: number, peers: readonly Pace[]): boolean {
  const known = peers.filter(({ count }) => count >= count_min);
  if (known.length === 0) return false;
  const slowest_ms = Math.max(...known.map(({ mean_ms }) => mean_ms));
  return taken_ms > floor_ms + factor * slowest_ms;
}
