// How deeply long tests look. `npm test` looks as far as a few minutes allow, with new seeds each time. `npm run test:deep`
// looks further, with the seed that it prints; CI runs one part of it for each commit.

import { basename } from "node:path";
import fc from "fast-check";

const { TEST_DEEP, TEST_SEED, TEST_ALL, TEST_STORE } = process.env;

export const isDeep = TEST_DEEP === "1";

/**
 * How often a test tries something, or how many items it tries: `shallow` in `npm test`, `deep` in `npm run test:deep`.
 */
export function times(shallow: number, deep: number): number {
  return isDeep ? deep : shallow;
}

/** The seed of this run, from 0 to 2^31 - 1. A test that uses the seed names it when the test fails. */
export const seed: number = TEST_SEED ? Number(TEST_SEED) : Math.floor(Math.random() * 2 ** 31);

/**
 * Chooses among cases that take long: `count` of them in `npm test`, others with each seed, and all in `npm run
 * test:deep`.
 */
export function some<T>(count: number, all: readonly T[]): T[] {
  return isDeep ? [...all] : drawn(count, all, seed);
}

/** Draws `count` items, in their order; others with each seed. */
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

/** How long a property is tried, in milliseconds: less than a test may take. */
const looking_ms = 50_000;

/**
 * The parameters for a fast-check property whose cases take a while each; an asynchronous property is tried by `holds`.
 * If a case breaks the property, ever smaller cases are tried; when the time is up, the smallest so far is reported
 * with its seed. A machine that is too slow for all the cases tries fewer, and that is no failure.
 */
export function cases(numRuns: number, interruptAfterTimeLimit = looking_ms) {
  return { seed, numRuns, interruptAfterTimeLimit, markInterruptAsFailure: false };
}

/**
 * Tries a property in `numRuns` cases. When the time is up, fast-check goes on without waiting for the case under way,
 * which would then work on what the next test uses; so it is awaited here.
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
