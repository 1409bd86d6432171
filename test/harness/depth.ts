// How deeply long tests look. `npm test` looks as far as a few minutes allow, with new seeds each time. `npm run test:deep`
// looks further, with the seed that it prints; CI runs one part of it for each commit.

const { TEST_DEEP, TEST_SEED } = process.env;

export const isDeep = TEST_DEEP === "1";

/** How often something is tried, or how many are tried: first in `npm test`, then in `npm run test:deep`. */
export function times(shallow: number, deep: number): number {
  return isDeep ? deep : shallow;
}

/** The seed of this run, from 0 to 2^31 - 1. A test that uses it names it when it fails. */
export const seed: number = TEST_SEED ? Number(TEST_SEED) : Math.floor(Math.random() * 2 ** 31);

/** Of cases that take long: so many in `npm test`, others with each seed, and all in `npm run test:deep`. */
export function some<T>(count: number, all: readonly T[]): T[] {
  if (isDeep) return [...all];
  const ranks = all.map((_, index) => Bun.hash(`${seed} ${index}`));
  const chosen = new Set([...ranks].sort((a, b) => (a < b ? -1 : 1)).slice(0, count));
  return all.filter((_, index) => chosen.has(ranks[index]!));
}

/** A law that is broken is looked for in ever smaller cases; after this time the failure is reported with its seed. */
const looking_ms = 50_000;

/** The parameters of a property of fast-check whose cases take a while each. */
export function cases(numRuns: number) {
  return { seed, numRuns, interruptAfterTimeLimit: looking_ms, markInterruptAsFailure: true };
}
