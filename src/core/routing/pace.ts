/** Compares how soon a route begins to answer with its peers. Pure. */

export interface RoutePace {
  /** A moving mean of the milliseconds until the first part, beyond what the request's size explains. */
  mean_ms: number;
  count: number;
}

const share = 0.1;
/** A mean of fewer measurements is not used. */
const count_min = 10;
/** A route is slow if it answers later than its peers by this factor and by this many milliseconds. */
const factor = 4;
const floor_ms = 2_000;

export function paced(pace: RoutePace | undefined, taken_ms: number): RoutePace {
  if (!pace) return { mean_ms: taken_ms, count: 1 };
  // The first measurements make a plain mean.
  const part = Math.max(share, 1 / (pace.count + 1));
  return { mean_ms: pace.mean_ms + part * (taken_ms - pace.mean_ms), count: pace.count + 1 };
}

/** Reports whether a route is slow. Without enough measurements of its peers, no route is. */
export function isFarBeyond(taken_ms: number, peers: readonly RoutePace[]): boolean {
  const known = peers.filter(({ count }) => count >= count_min);
  if (known.length === 0) return false;
  const slowest_ms = Math.max(...known.map(({ mean_ms }) => mean_ms));
  return taken_ms > floor_ms + factor * slowest_ms;
}
