// A real browser for a group of tests, and the node or the company that the tests look at.
import { afterAll, beforeAll, describe } from "bun:test";
import { launchBrowser, noBrowser } from "./chromium.ts";

export type Browser = Awaited<ReturnType<typeof launchBrowser>>;

/** A group of tests that need a real browser. It is skipped if there is no browser, and its title says why. */
export const describeInBrowser = (title: string, tests: () => void) =>
  describe.skipIf(noBrowser !== null)(`${title}${noBrowser ? `: ${noBrowser}` : ""}`, tests);

/** Before the tests, starts a browser and the node or company that they look at; ends both after the tests. */
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
