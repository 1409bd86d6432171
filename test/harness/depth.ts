// Settings for how thoroughly randomized and long tests search. `npm test` searches for a few minutes, with a new seed
// each time. `npm run test:deep` searches longer, with the seed that it prints; CI runs one part of it for each commit.

import { basename } from "node:path";
import fc from "fast-check";

const { TEST_DEEP, TEST_SEED, TEST_ALL, TEST_STORE } = process.env;

export const isDeep = TEST_DEEP === "1";

/** Returns the number of attempts or items of a test: `shallow` in `npm test`, `deep` in `npm run test:deep`. */
export function times(shallow: number, deep: number): number {
  return isDeep ? deep : shallow;
}

/** The seed of this run, from 0 to 2^31 - 1. A test that uses it prints it when the test fails. */
export const seed: number = TEST_SEED ? Number(TEST_SEED) : Math.floor(Math.random() * 2 ** 31);

/**
 * Selects cases of a slow test: `count` random ones by the seed in `npm test`, and all of them in `npm run test:deep`.
 */
export function some<T>(count: number, all: readonly T[]): T[] {
  return isDeep ? [...all] : drawn(count, all, seed);
}

/** Draws `count` items at random by the seed `by`, and returns them in their original order. */
export function drawn<T>(count: number, all: readonly T[], by: number): T[] {
  const ranks = all.map((_, index) => Bun.hash(`${by} ${index}`));
  const chosen = new Set([...ranks].sort((a, b) => (a < b ? -1 : 1)).slice(0, count));
  return all.filter((_, index) => chosen.has(ranks[index]!));
}

/**
 * The kinds of database on which a test file of a store runs: Postgres, and in one of three runs of the whole `npm
 * test` the embedded database, too. Both run in `npm test -- FILE` and `npm test -- --all`, and with TEST_ALL=1;
 * Postgres alone runs where TEST_STORE=postgres.
 */
export function databaseKinds(file: string): readonly ("postgres" | "pglite")[] {
  if (TEST_STORE === "postgres") return ["postgres"];
  const isBoth = isDeep || TEST_ALL === "1" || Bun.hash(`${seed} ${basename(file)}`) % 3n === 0n;
  return isBoth ? ["postgres", "pglite"] : ["postgres"];
}

/** The time limit for one property's cases, in milliseconds. It is shorter than the time limit of a test. */
const looking_ms = 50_000;

/**
 * The parameters for a fast-check property whose cases take long; for an asynchronous property, use `holds`. If a case
 * breaks the property, fast-check shrinks it until the time is up, and reports the smallest failing case with its seed.
 * A machine that is too slow for all cases tries fewer, which is no failure.
 */
export function cases(numRuns: number, interruptAfterTimeLimit = looking_ms) {
  return { seed, numRuns, interruptAfterTimeLimit, markInterruptAsFailure: false };
}

/**
 * Tries an asynchronous property in `numRuns` cases. When the time is up, fast-check returns without waiting for the
 * running case, which would then change data that the next test uses. So the running case is awaited here.
 */
export async function holds<Values>(law: fc.IAsyncProperty<Values>, numRuns: number, ms = looking_ms): Promise<void> {
  let underWay: Promise<unknown> = Promise.resolve();
  const run = law.run.bind(law);
  law.run = (...values) => {
    const outcome = run(...values);
    underWay = outcome;
    return outcome;
  };
  try {
    await fc.assert(law, cases(numRuns, ms));
  } finally {
    await underWay;
  }
}
