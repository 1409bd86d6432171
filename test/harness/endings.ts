// Whatever a test has started is ended after the test, also if the test fails.

import { afterEach } from "bun:test";

/** Returns a list for the file that calls this: what a test adds to it is called after that test, the last first. */
export function endedAfterEach(): (() => unknown)[] {
  const ending: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ending.splice(0).reverse()) await end();
  });
  return ending;
}
