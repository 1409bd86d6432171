// A real browser for a group of tests, with the node or the company that they look at.
import { afterAll, beforeAll, describe } from "bun:test";
import { launchBrowser, noBrowser } from "./chromium.ts";

export type Browser = Awaited<ReturnType<typeof launchBrowser>>;

/** A group of tests that need a real browser: skipped, and saying why, where there is none. */
export const describeInBrowser = (title: string, tests: () => void) =>
  describe.skipIf(noBrowser !== null)(`${title}${noBrowser ? `: ${noBrowser}` : ""}`, tests);

/** Starts a browser and what the tests look at before them, and ends both after them. */
export function browserForTests<Started extends AsyncDisposable>(
  start: () => Promise<Started>,
  opened: (started: Started, browser: Browser) => unknown,
): void {
  let begun: [Started, Browser] | undefined;
  beforeAll(async () => {
    begun = await Promise.all([start(), launchBrowser()]);
    await opened(...begun);
  });
  afterAll(async () => {
    const [started, browser] = begun ?? [];
    await browser?.close();
    await started?.[Symbol.asyncDispose]();
  });
}
