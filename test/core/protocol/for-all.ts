import fc from "fast-check";

/**
 * Tries `check` with `runs` random draws of the values. A failure prints the seed and the smallest values that break
 * it.
 */
export function forAll<Values extends [unknown, ...unknown[]]>(
  values: { [At in keyof Values]: fc.Arbitrary<Values[At]> },
  runs: number,
  check: (...drawn: Values) => void,
): void {
  fc.assert(
    fc.property(fc.tuple<Values>(...values), (drawn) => check(...drawn)),
    { numRuns: runs },
  );
}
