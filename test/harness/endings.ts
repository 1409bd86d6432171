// Stops everything that a test has started when the test ends, even if it fails.

import { afterEach } from "bun:test";

/**
 * Returns a list for the calling test file. The functions that a test adds to it are called after that test, last
 * first.
 */
export function endedAfterEach(): (() => unknown)[] {
  const ending: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ending.splice(0).reverse()) await end();
  });
  return ending;
}
