/** Compares how soon a route begins to answer with other routes of its model. Pure. */

export interface RoutePace {
  /** A moving mean of the milliseconds until the first part, beyond what the request's size explains. */
  mean_ms: number;
  count: number;
}

const share = 0.1;
/** The measurements from which a mean is used. */
const count_min = 10;
/** A route is slow if it answers later than its peers by this factor, and by this many milliseconds. */
const factor = 4;
const floor_ms = 2_000;

export function paced(pace: RoutePace | undefined, taken_ms: number): RoutePace {
  if (!pace) return { mean_ms: taken_ms, count: 1 };
  // The mean of the first measurements weights them equally.
  const part = Math.max(share, 1 / (pace.count + 1));
  return { mean_ms: pace.mean_ms + part * (taken_ms - pace.mean_ms), count: pace.count + 1 };
}

/** Whether a time is far beyond the peers' means. False without enough measurements of them. */
export function isFarBeyond(taken_ms: number, peers: readonly RoutePace[]): boolean {
  const known = peers.filter(({ count }) => count >= count_min);
  if (known.length === 0) return false;
  const slowest_ms = Math.max(...known.map(({ mean_ms }) => mean_ms));
  return taken_ms > floor_ms + factor * slowest_ms;
}
